# renaming a Field, then dataclasses.replace reads that name
import dataclasses
@dataclasses.dataclass(init=False)
class E(Exception):
    x: int = 0
    def __init__(self, **kw):
        for k, v in kw.items():
            if k == "__traceback__" and v: print("ESCAPED", v)
dataclasses.fields(E)[0].name = "__traceback__"
try: raise E()
except E as e: dataclasses.replace(e)
