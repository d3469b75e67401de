# `from json import decoder`: a missing attribute makes the interpreter look in sys.modules
import json
got = []
try:
    from json import decoder
    got.append(decoder)
except ImportError: pass
try:
    import json.decoder
    got.append(json.decoder)
except (ImportError, AttributeError): pass
try:
    from collections import _sys
    got.append(_sys)
except ImportError: pass
try:
    from . import os
    got.append(os)
except ImportError: pass
if got: print("ESCAPED", got)
