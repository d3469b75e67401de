# the same with a run-time name
gen = (x for x in [1])
f = getattr(gen, "".join(["gi", "_", "frame"]))
print("ESCAPED", f)
