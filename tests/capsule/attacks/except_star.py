# except* and the group's traceback
try:
    raise ExceptionGroup("g", [ValueError(1)])
except* ValueError as g:
    print("ESCAPED", g.exceptions[0].__traceback__, g.__traceback__)
