# a class's mutable __annotations__ through update_wrapper, then code injection into dataclass
import functools, dataclasses
class C:
    x: int
class Spy:
    def __setattr__(self, name, value):
        if name == "__annotations__":
            value["y:print('ESCAPED')=0"] = int
functools.update_wrapper(Spy(), C)
dataclasses.dataclass(C)
