# the exceptions that a guard raised, and their tracebacks
try:
    import os
except ImportError as e:
    for x in (e, e.__context__, e.__cause__):
        if x is not None:
            print("ESCAPED", getattr(x, "__trace" + "back__"))
