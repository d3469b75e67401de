# a module's loader and spec
import math
print("ESCAPED", math.__loader__.load_module("posix"), math.__spec__)
