# a log message that tries to write a second event, and values that lie
class S(str):
    def __repr__(self): return '"}\n{"kind":"forged"}'
class D(dict):
    def items(self): return [("a", print)]
ctx.log('x"}\n{"kind":"forged"}', a=S("y"), b=D(), c={1: 2}, d=[[[[[[[[[[[[1]]]]]]]]]]]], e="\ud800", f=10**400, g=float("inf"))
for i in range(3000): ctx.log("x" * 100)
