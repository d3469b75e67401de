import math
from abc import ABC, abstractmethod
from dataclasses import dataclass


class Shape(ABC):
    @property
    def name(self) -> str:
        return type(self).__name__.lower()

    @abstractmethod
    def area(self) -> float: ...


@dataclass
class Circle(Shape):
    radius: float

    def area(self) -> float:
        return math.pi * self.radius**2


@dataclass
class Rectangle(Shape):
    width: float
    height: float

    def area(self) -> float:
        return self.width * self.height
