# type() with three arguments, and metaclasses reached as type(cls)
from abc import ABC
from enum import Enum
for t in (type, type(int), type(ABC), type(Enum), int.__class__, type(type(int))):
    try:
        print("ESCAPED", t("X", (object,), {"__match_args__": ("gi_frame",)}))
    except TypeError as e: print(e)
