# the evaluating builtins, by every name
for name in ("eval", "exec", "compile", "open", "globals", "locals", "vars", "breakpoint", "help", "dir", "memoryview"):
    pass
for f in (eval, exec, compile, open, globals, locals, vars, dir):
    try:
        print("ESCAPED", f("/etc/passwd"))
    except PermissionError as e: print(e)
