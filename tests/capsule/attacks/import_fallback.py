# deleting a name from a module, so that IMPORT_FROM falls back to sys.modules
import collections
try:
    del collections.abc
except Exception as e: print(e)
from collections import abc
for name in ("sys", "ABCMeta"):
    if hasattr(abc, name): print("ESCAPED", name)
