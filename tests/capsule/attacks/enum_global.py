# enum.global_enum writes into the globals of the module a class names
from enum import Enum, global_enum
@global_enum
class X(Enum):
    refuse = 1
print("ESCAPED")
