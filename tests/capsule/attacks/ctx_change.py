# changing ctx and its class
done = []
for what in (lambda: setattr(ctx, "x", 1), lambda: setattr(type(ctx), "log", print),
             lambda: setattr(type(ctx.config), "x", 1), lambda: delattr(type(ctx), "log")):
    try:
        what(); done.append(what)
    except (AttributeError, TypeError) as e: print(e)
try:
    ctx.config["COLOUR"] = "red"; done.append("config")
except TypeError as e: print(e)
if done or ctx.config["COLOUR"] != "green" or "SECRET" in ctx.config or "HOTCELL_STATE" in ctx.config: print("ESCAPED", done)
