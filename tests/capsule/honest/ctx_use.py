"""ctx in all its parts."""
print(ctx.config["COLOUR"], dict(ctx.config), len(ctx.config), "SECRET" in ctx.config, ctx.config.get("MISSING", "none"))
print(ctx.read_state("greeting"), ctx.read_state("list"))
try: ctx.read_state("nope")
except KeyError as e: print(e)
x = ctx.read_state("list"); x.append(3); print(ctx.read_state("list"))
class Thing:
    def __repr__(self): return "Thing"
ctx.log("started", n=1, t=Thing(), nested={"a": [1, 2, (3,)]}, nan=float("nan"), message="allowed too")
ctx.log(123)
for i in range(1200): ctx.log("line", i=i)
ctx.log("x" * 100000)
print(ctx)
