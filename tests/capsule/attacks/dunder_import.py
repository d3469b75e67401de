# the import function itself
print("ESCAPED", __import__("os"))
