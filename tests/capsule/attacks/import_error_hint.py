# printing an ImportError imports the module it names, for a hint
import re
try:
    e = ImportError("x", name="this", name_from="y")
except TypeError:
    e = ImportError("x", name="this")
    e.name_from = "y"
raise e
