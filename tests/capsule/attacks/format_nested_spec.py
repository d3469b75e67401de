# traversal inside a nested format spec
def f(): pass
print("ESCAPED", "{0:{1.__globals__}}".format("", f))
