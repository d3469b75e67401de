# the same through dataclasses.asdict, which deep-copies values
import dataclasses
@dataclasses.dataclass
class C:
    x: object = 0
target = []
class G:
    __slots__ = ("name",)
    def __new__(cls): return target[0] if target else object.__new__(cls)
g = G()
g.name = "x:print('ESCAPED')=0"
target.append(dataclasses.fields(C)[0])
try: dataclasses.asdict(C(g))
except Exception as e: print(e)
@dataclasses.dataclass
class D(C):
    y: int = 0
