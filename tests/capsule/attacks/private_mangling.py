# name mangling: does a class-private name come out as something forbidden?
class _:
    def f(self, x): return x.__self__
class convert_:
    def f(self, x): return x.__
print("ESCAPED", _().f(print).open)
