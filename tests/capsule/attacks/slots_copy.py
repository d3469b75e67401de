# copy reads the names in __slots__, a list changed afterwards
import copy
names = ["a"]
class E(Exception):
    __slots__ = names
    def __setattr__(self, k, v): print("ESCAPED", k, v)
names.append("__traceback__")
copy.copy(E())
