# putting a false guard into the globals with a star-import
import math
def fake(o, n=""): return o
try:
    setattr(math, "<write>", fake)
except (TypeError, AttributeError) as e: print(e)
from math import *
import random
random.Random.seed = print
print("ESCAPED")
