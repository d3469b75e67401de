# attribute traversal in str.format_map
def f(): pass
print("ESCAPED", "{f.__globals__}".format_map({"f": f}))
