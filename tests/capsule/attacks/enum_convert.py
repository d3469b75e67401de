# Enum._convert_ makes members of any module's names
from enum import IntEnum, Enum
X = Enum._convert_("X", "os", lambda n: n == "system")
print("ESCAPED", X.system)
