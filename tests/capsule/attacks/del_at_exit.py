# __del__ during shutdown, when guards may have lost their globals
class D:
    def __del__(self, g=getattr):
        print("ESCAPED", g(print, "__self__"))
class Cycle: pass
a = Cycle(); a.a = a; a.d = D()
d = D()
