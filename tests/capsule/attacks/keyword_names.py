# dunder names as keywords, aliases and globals
import math as __builtins__
dict(__class__=1)
print("ESCAPED")
