# the capsule's own functions' globals
print("ESCAPED", ctx.log.__func__.__globals__)
