"""Dataclasses, enums, named tuples, typing."""
import dataclasses
import enum
from dataclasses import dataclass, field
from typing import Dict, Generic, List, NamedTuple, Optional, TypeVar
from collections import namedtuple

@dataclass(order=True)
class Item:
    name: str
    price: float = 1.0
    tags: List[str] = field(default_factory=list)
    def __post_init__(self): self.price = float(self.price)
@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0
print(Item("a", 2), Item("a") < Item("b"), dataclasses.asdict(Item("c", tags=["t"])), dataclasses.replace(Point(1), y=5))
try: Point(1).x = 2
except dataclasses.FrozenInstanceError as e: print("frozen", e)
class Colour(enum.Enum):
    RED = 1
    GREEN = enum.auto()
    @property
    def nice(self): return self.name.title()
    @classmethod
    def _missing_(cls, value): return cls.RED
class Perm(enum.IntFlag):
    R = 4
    W = 2
print(Colour(2), Colour["RED"].nice, list(Colour), Colour(99), (Perm.R | Perm.W).value, list(Colour.__members__))
print(list(enum.Enum("Animal", "CAT DOG")), enum.Enum("N", {"A": 10}).A.value)
P = namedtuple("P", "x y", defaults=[3])
p = P(1); print(p, p._replace(x=5), p._asdict(), P._fields)
class E(NamedTuple):
    id: int
    name: str = "none"
    def hello(self): return f"hi {self.name}"
print(E(1), E(2, "b").hello())
T = TypeVar("T")
class Box(Generic[T]):
    def __init__(self, v: Optional[T] = None): self.v = v
print(Box[int](4).v)
