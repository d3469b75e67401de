# mappingproxy hands its dict to the other operand
class Spy:
    def __eq__(self, other):
        if type(other) is dict: print("ESCAPED", other)
        return True
    def __ror__(self, other):
        if type(other) is dict: print("ESCAPED", other)
ctx.config == Spy()
try: ctx.config | Spy()
except TypeError: pass
