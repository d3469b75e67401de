# typing.get_type_hints evaluates annotation strings
import typing
def f(x: "print('ESCAPED', ().__class__) or int"): pass
typing.get_type_hints(f)
