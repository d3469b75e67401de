# building a function out of another's code
def f(): pass
F = type(f)
print("ESCAPED", F(f.__code__.replace(co_names=("open",)), {}))
