# calling a module's __init__ again, to change the name that IMPORT_FROM looks up
import collections
collections.__init__("os")
got = []
try:
    from collections import path
    got.append(path)
except ImportError as e: print(e)
import collections.abc as a
if got or hasattr(a, "sys"): print("ESCAPED", got)
