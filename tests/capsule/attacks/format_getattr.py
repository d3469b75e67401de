# str.format fetched with getattr
def f(): pass
print("ESCAPED", getattr("{0.__globals__}", "for" + "mat")(f))
