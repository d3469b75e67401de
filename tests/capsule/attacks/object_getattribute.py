# object.__getattribute__ by getattr
print("ESCAPED", getattr(object, "__getattri" + "bute__")(print, "__self__"))
