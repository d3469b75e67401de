# TypedDict makes a class with any annotation, which dataclass then compiles
from typing import TypedDict
import dataclasses
dataclasses.dataclass(TypedDict("T", {"x:print('ESCAPED')=0": int}))
