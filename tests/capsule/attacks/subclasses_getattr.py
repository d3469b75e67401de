# __subclasses__ by getattr, the name put together at run time
base = getattr(getattr((), "__cla" + "ss__"), "__ba" + "se__")
print("ESCAPED", getattr(base, "__subclas" + "ses__")()[0])
