# classmethod chains descriptors: cached_property reads the class's own dict
from functools import cached_property
class P(cached_property): pass
p = P(lambda s: None)
class A:
    d = classmethod(p)
p.attrname = "__dict__"
try:
    x = A.d
    print(type(x))
    class B(A):
        y = x
    z = B().y
    print("ESCAPED" if type(z) is not dict else "")
except TypeError as e: print(e)
