# str.format through the __match_args__ a dataclass makes, with ABC.register
from abc import ABC
from dataclasses import dataclass
def f(): pass
@dataclass
class S(ABC):
    format: object
S.register(str)
match "{0.__globals__}":
    case S(go):
        print("ESCAPED", go(f))
