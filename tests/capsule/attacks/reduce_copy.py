# copy.copy believes __reduce_ex__: setattr with any name on any object
import copy
class A: pass
def r(self, protocol): return (lambda: len, (), (None, {"__code__": 1}))
try:
    setattr(A, "__reduce_ex__", r)
except AttributeError as e: print(e)
else: print("ESCAPED")
class B:
    def __reduce_ex__(self, p): return (print, ("ESCAPED",))
copy.copy(B())
