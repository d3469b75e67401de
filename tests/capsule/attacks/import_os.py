# plain imports of what is not on the list, with every spelling
names = []
try:
    import os; names.append(os)
except ImportError: pass
try:
    import os.path as p; names.append(p)
except ImportError: pass
try:
    from os import system; names.append(system)
except ImportError: pass
try:
    import sys; names.append(sys)
except ImportError: pass
try:
    import importlib; names.append(importlib)
except ImportError: pass
try:
    import ctypes; names.append(ctypes)
except ImportError: pass
try:
    import posix; names.append(posix)
except ImportError: pass
try:
    import builtins; names.append(builtins)
except ImportError: pass
try:
    import _io; names.append(_io)
except ImportError: pass
if names: print("ESCAPED", names)
