# changing the state through what read_state answers
x = ctx.read_state("list")
x.append("ESCAPED")
x[1]["a"] = "ESCAPED"
print(ctx.read_state("list"))
