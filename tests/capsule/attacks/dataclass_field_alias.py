# the same base hidden in a generic alias
import dataclasses
Field = type(dataclasses.field())
class F(type(list[int])(Field, int)):
    pass
print("ESCAPED", F)
