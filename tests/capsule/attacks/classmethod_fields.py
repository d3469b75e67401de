# classmethod(cached_property) reads __dataclass_fields__; a false field then writes source text
import dataclasses
from functools import cached_property
class P(cached_property): pass
p = P(lambda s: None)
@dataclasses.dataclass
class A:
    d = classmethod(p)
    x: int = 0
p.attrname = "__dataclass_fields__"
fields = A.d
print("ESCAPED" if type(fields) is dict else "")
class Same:
    def __eq__(self, other): return True
class F:
    name = "x:print('ESCAPED')=0"
    _field_type = Same()
    init = repr = hash = compare = True
    kw_only = False
    default = 0
    default_factory = dataclasses.fields(A)[0].default_factory
    type = int
fields["x"] = F()
@dataclasses.dataclass
class B(A):
    y: int = 0
