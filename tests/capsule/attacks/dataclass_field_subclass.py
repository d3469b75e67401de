# a Field subclass whose name changes while dataclass writes source text with it
import dataclasses
class F(type(dataclasses.field())):
    @property
    def name(self): return "x:print('ESCAPED')=0"
    @name.setter
    def name(self, v): pass
@dataclasses.dataclass
class C:
    x: int = F(0, dataclasses.field().default_factory, True, True, None, True, None, False)
