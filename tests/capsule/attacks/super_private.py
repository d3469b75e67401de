# private names of the library through super() and a subclass of super
from enum import Enum
class S(super): pass
print("ESCAPED", S)
