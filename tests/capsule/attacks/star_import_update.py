# UserDict.__copy__ updates the dict of whatever __new__ answers: a module; then a star-import
from collections import UserDict
from types import SimpleNamespace
import copy, math, random
target = []
class G(UserDict, SimpleNamespace):
    def __new__(cls, *a, **k): return target[0] if target else super().__new__(cls)
    def __init__(self, **k): SimpleNamespace.__init__(self, **k)
g = G(**{"<write>": lambda o, n="": o, "__all__": ["<write>"], "data": {}})
target.append(math)
for go in (lambda: copy.copy(g), lambda: getattr(UserDict, "__copy__")(g), lambda: UserDict.copy(g)):
    try: go()
    except Exception as e: print(e)
from math import *
random.Random.seed = print
print("ESCAPED")
