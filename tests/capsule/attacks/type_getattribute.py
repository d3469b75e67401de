# type.__getattribute__ and object.__getattribute__ as ways around getattr
print("ESCAPED", type.__getattribute__(object, "__subclasses__")())
