# watching deepcopy through the memo
import copy, dataclasses
class Memo(dict):
    def __setitem__(self, k, v): print("ESCAPED", v)
copy.deepcopy(ctx.config, Memo())
