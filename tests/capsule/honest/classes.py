"""Classes, properties, inheritance, operators, private names."""
from __future__ import annotations
from abc import ABC, abstractmethod

class Shape(ABC):
    registry = {}
    def __init_subclass__(cls, **kw):
        super().__init_subclass__(**kw)
        Shape.registry[cls.__name__] = cls
    @abstractmethod
    def area(self) -> float: ...
    def __lt__(self, other): return self.area() < other.area()
    def __repr__(self): return f"{self.__class__.__name__}({self.area():.2f})"

class Square(Shape):
    __slots__ = ("_side",)
    def __init__(self, side): self._side = side
    @property
    def side(self): return self._side
    @side.setter
    def side(self, v):
        if v < 0: raise ValueError("negative")
        self._side = v
    def area(self): return self._side ** 2

class Circle(Shape):
    def __init__(self, r):
        self.__r = r
        self._n = 0
    def area(self):
        self._n += 1
        return 3.14159 * self.__r ** 2
    @classmethod
    def unit(cls): return cls(1)
    @staticmethod
    def name(): return "circle"

s = Square(3); s.side = 4
print(sorted([s, Circle(1), Circle.unit(), Square(1)]), Circle.name(), sorted(Shape.registry))
try: Shape()
except TypeError as e: print("abstract")
try: s.side = -1
except ValueError as e: print("refused", e)
print(isinstance(s, Shape), type(s) is Square, type(s).__name__, isinstance(Square, type), hasattr(s, "side"), getattr(s, "nope", 7))
setattr(s, "side", 9); print(s.side)

class Frozen:
    def __init__(self, x): object.__setattr__(self, "x", x)
    def __setattr__(self, k, v): raise TypeError("frozen")
class Logged:
    def __setattr__(self, k, v):
        print("set", k)
        super().__setattr__(k, v)
    def __getattr__(self, k): return k.upper()
f = Frozen(5)
try: f.x = 6
except TypeError as e: print(e, f.x)
l = Logged(); l.a = 1; print(l.a, l.b)

class Typed:
    def __set_name__(self, owner, name): self.name = "_" + name
    def __get__(self, obj, owner=None): return self if obj is None else getattr(obj, self.name, 0)
    def __set__(self, obj, value): setattr(obj, self.name, int(value))
class Row:
    n = Typed()
r = Row(); r.n = "12"; print(r.n)
Plain = Row
if __name__ == "__main__": print("main")
