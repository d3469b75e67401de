# __setattr__ taken as a bound method of a library object
import dataclasses
@dataclasses.dataclass
class C:
    x: int = 0
f = dataclasses.fields(C)[0]
try: f.__setattr__("name", "x:print('ESCAPED')=0")
except (TypeError, AttributeError) as e: print(e)
try: object.__setattr__(f, "name", "x:print('ESCAPED')=0")
except (TypeError, AttributeError) as e: print(e)
@dataclasses.dataclass
class D(C):
    y: int = 0
