"""Exceptions, finally, chaining, refused things as exceptions one can catch."""
class AppError(Exception):
    def __init__(self, message, code=1):
        super().__init__(message)
        self.code = code
def f(x):
    try:
        if x: raise AppError("bad", code=7)
        return "fine"
    except AppError as e:
        return f"{type(e).__name__} {e} {e.code} {e.args}"
    else: print("never")
    finally: print("finally", x)
print(f(0), f(1))
try:
    try: 1 / 0
    except ZeroDivisionError as e: raise ValueError("second") from e
except ValueError as e: print(repr(e), repr(e.__cause__))
try: import os
except ImportError as e: print(str(e)[:45])
try: import os.path as p
except ImportError as e: print(str(e)[:50])
try: from collections import _sys
except ImportError as e: print(e)
for g in (open, eval, exec):
    try: g("x")
    except PermissionError as e: print(e)
try: getattr((), "__class__" + "x__")
except AttributeError as e: print(e)
try: undefined
except NameError as e: print(e)
assert 1 + 1 == 2, "maths"
try: assert False, "no"
except AssertionError as e: print("assert", e)
def r(): return r()
try: r()
except RecursionError: print("deep")
try: {}["k"]
except (KeyError, IndexError) as e: print(e)
while True:
    break
else: print("no")
for i in []: pass
else: print("else")
