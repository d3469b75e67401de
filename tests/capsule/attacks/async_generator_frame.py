# an asynchronous generator's frame
async def c(): yield 1
co = c()
print("ESCAPED", getattr(co, "ag_" + "frame").f_builtins)
