# __match_args__ put in by the functional Enum interface
from enum import Enum
class E(Exception): pass
X = Enum("X", {"__match_args__": ("__traceback__",), "A": "a"}, type=str)
match X.A:
    case X(tb):
        print("ESCAPED", tb)
print("ESCAPED: an Enum with a __match_args__ of our own")
