# the same with a run-time name
from enum import Enum
X = getattr(Enum, "_conv" + "ert_")("X", "os", lambda n: n == "system")
print("ESCAPED", X.system)
