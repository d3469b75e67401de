# dunder names smuggled through walrus, comprehension, for and with targets
[__builtins__ := 1 for _ in [0]]
for __import__ in [print]: pass
def f(__class__): pass
print("ESCAPED")
