# str.format as an unbound function, through map
def f(): pass
for s in map(str.format, ["{0.__globals__[__builtins__]}"], [f]):
    print("ESCAPED", s)
