# __match_args__ computed at run time
from abc import ABC
class A(ABC):
    __match_args__ = tuple(["gi_" + "frame"])
gen = (x for x in [1])
A.register(type(gen))
match gen:
    case A(frame):
        print("ESCAPED", frame)
