# changing library functions' names and attributes
import json, functools, dataclasses
n = 0
def f(): pass
for g in (json.dumps, getattr, dataclasses.dataclass, ctx.log):
    try: g.__name__ = "x"; n += 1
    except (TypeError, AttributeError) as e: print(e)
    try: functools.update_wrapper(g, f)
    except (TypeError, AttributeError) as e: print(e)
    if g.__name__ in ("x", "f"): n += 1
if n: print("ESCAPED", n)
