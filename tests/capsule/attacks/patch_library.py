# changing the library's classes under the capsule's feet
import json, random, collections, functools, enum
n = 0
for o in (json.JSONEncoder, random.Random, collections.Counter, enum.Enum, type(ctx)):
    try:
        o.encode = lambda *a: print("ESCAPED"); n += 1
    except (TypeError, AttributeError) as e: print(e)
try:
    functools.total_ordering(type("X", (json.JSONEncoder,), {})); n += 1
except TypeError as e: print(e)
if n: print("ESCAPED", n)
