"""match in its forms (needs 3.10)."""
from dataclasses import dataclass
from enum import Enum
class C(Enum):
    A = 1
    B = 2
@dataclass
class P:
    x: int
    y: int
class Q:
    __match_args__ = ("a", "b")
    def __init__(self, a, b): self.a, self.b = a, b
def f(v):
    match v:
        case 0 | 1: return "small"
        case C.A: return "A"
        case P(0, y): return f"on axis {y}"
        case P(x=x, y=y) if x == y: return "diagonal"
        case Q(1, b): return f"q {b}"
        case [a, *rest]: return f"list {a} {rest}"
        case {"k": k, **more}: return f"map {k} {more}"
        case str(s): return "str " + s
        case type(): return "class"
        case _: return "other"
for v in (1, C.A, C.B, P(0, 4), P(2, 2), Q(1, 3), [1, 2, 3], {"k": 1, "z": 2}, "s", int, None): print(f(v))
