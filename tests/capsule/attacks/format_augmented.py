# x.format += y reads the attribute: __radd__ receives the bound method
def f(): pass
class S(str): pass
class R:
    def __radd__(self, other): print("ESCAPED", other(f)); return 1
s = S("{0.__globals__}")
s.format += R()
