# case object(__class__=c) reads an attribute
match ():
    case object(__class__=c):
        print("ESCAPED", c)
