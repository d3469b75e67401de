# the same with run-time names
from functools import cached_property
class P(cached_property): pass
p = P(lambda s: None)
p.attrname = "gi_" + "frame"
gen = (x for x in [1])
d = getattr(p, "__get" + "__")(type(gen), None)
print("ESCAPED", d)
