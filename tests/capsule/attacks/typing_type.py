# the real type through typing.Type, made callable
import typing
T = typing.Type[int]
T._inst = True
print("ESCAPED", T("X", (), {"__getattribute__": None}))
