# __match_args__ names attributes in strings
from abc import ABC
class A(ABC):
    __match_args__ = ("gi_" "frame",)
gen = (x for x in [1])
A.register(type(gen))
match gen:
    case A(frame):
        print("ESCAPED", frame)
