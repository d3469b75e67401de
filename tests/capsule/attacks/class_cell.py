# the __class__ cell of a method
class A:
    def f(self): return __class__.__base__.__subclasses__()
print("ESCAPED", A().f())
