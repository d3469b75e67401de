# string-free lazy evaluation: annotations of the future, type aliases
from __future__ import annotations
def f(x: print.__self__): pass
print("ESCAPED", f.__annotations__)
