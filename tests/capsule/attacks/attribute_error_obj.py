# AttributeError.obj holds what a format string had reached
def f(): pass
try:
    "{0.__globals__.nothing}".format(f)
except AttributeError as e:
    g = e.obj
    if "__builtins__" in g: print("ESCAPED", g)
