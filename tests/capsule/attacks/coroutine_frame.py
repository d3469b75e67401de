# a coroutine's frame
async def c(): pass
co = c()
print("ESCAPED", getattr(co, "cr_" + "frame").f_builtins)
