# a guard that runs out of stack half way must not let through
def deep(n):
    try:
        x = getattr(print, "__self__")
        print("ESCAPED", x)
    except RecursionError: return
    except AttributeError: pass
    try: deep(n + 1)
    except RecursionError: pass
deep(0)
