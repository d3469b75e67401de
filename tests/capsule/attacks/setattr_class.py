# assigning __class__, __code__, __defaults__ and __bases__
def f(): pass
class A: pass
class B: pass
n = 0
for o, k, v in ((f, "__code__", 1), (f, "__globals__", {}), (A, "__bases__", (B,)), (A(), "__class__", B), (f, "__defaults__", (1,)), (A, "__module__", "os")):
    try: setattr(o, k, v); n += 1
    except AttributeError as e: print(e)
    try: object.__setattr__(o, k, v); n += 1
    except AttributeError as e: print(e)
    except TypeError as e: print(e)
if n: print("ESCAPED", n)
