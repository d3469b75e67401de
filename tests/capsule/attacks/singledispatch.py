# singledispatch evaluates annotation strings, which no one has vetted
from functools import singledispatch
@singledispatch
def f(x): pass
@f.register
def _(x: "print('ESCAPED', ().__class__.__base__.__subclasses__()) or int"): pass
