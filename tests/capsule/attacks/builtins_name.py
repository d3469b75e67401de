# __builtins__ as a global name
global __builtins__
print("ESCAPED", __builtins__)
