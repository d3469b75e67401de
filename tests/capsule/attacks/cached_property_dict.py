# cached_property.__get__ reads __dict__ of any object: a descriptor for gi_frame
from functools import cached_property
class P(cached_property): pass
p = P(lambda s: None)
p.attrname = "gi_" + "frame"
gen = (x for x in [1])
d = p.__get__(type(gen), None)
print("ESCAPED", d.__get__(gen))
