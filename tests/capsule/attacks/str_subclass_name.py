# getattr with a str subclass that lies about what it is
class Liar(str):
    def startswith(self, *a): return False
    def endswith(self, *a): return False
    def isidentifier(self): return True
    def __eq__(self, other): return False
    def __hash__(self): return 1
    def strip(self, *a): return ""
print("ESCAPED", getattr(print, Liar("__self__")).open)
