# str.format through a class pattern's keyword
def f(): pass
match "{0.__globals__}":
    case str(format=go):
        print("ESCAPED", go(f))
