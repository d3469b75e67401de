# attribute traversal in str.format
def f(): pass
s = "{0.__globals__}".format(f)
if "builtins" in s: print("ESCAPED", s)
