# copy.copy of a method is getattr(self, func.__name__), with a name of our choice
import copy
gen = (x for x in [1])
class A:
    def f(self): pass
def f(): pass
f.__name__ = "gi_" + "frame"
m = type(A().f)(f, gen)
x = copy.copy(m)
print("ESCAPED" if x is not m else "same")
