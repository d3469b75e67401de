# __match_args__ made by namedtuple from strings, inherited by an ABC
from abc import ABC
from collections import namedtuple
class A(namedtuple("N", ["gi_" + "frame"]), ABC): pass
gen = (x for x in [1])
A.register(type(gen))
match gen:
    case A(frame):
        print("ESCAPED", frame)
