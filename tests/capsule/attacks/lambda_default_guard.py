# shadowing what the guards are called with
getattr = lambda o, n: 1
class type: pass
def isinstance(a, b): return True
def issubclass(a, b): return True
str = object
print("ESCAPED" if hasattr(print, "__self__") else "")
