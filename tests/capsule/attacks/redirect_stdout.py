# a redirect_stdout subclass chooses the attribute of sys that it keeps
from contextlib import redirect_stdout
class R(redirect_stdout):
    _stream = "modules"
r = R({})
with r:
    print("ESCAPED", r._old_targets)
