# a ForwardRef evaluates its string
from typing import Optional, List
r = List["print('ESCAPED')"]
r.__args__[0]._evaluate({}, {}, frozenset())
