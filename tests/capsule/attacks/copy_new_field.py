# copy sets slots on whatever __new__ answers: a Field gets a name that is source text
import copy, dataclasses
@dataclasses.dataclass
class C:
    x: int = 0
target = []
class G:
    __slots__ = ("name",)
    def __new__(cls): return target[0] if target else object.__new__(cls)
g = G()
g.name = "x:print('ESCAPED')=0"
target.append(dataclasses.fields(C)[0])
try: copy.copy(g)
except Exception as e: print(e)
@dataclasses.dataclass
class D(C):
    y: int = 0
