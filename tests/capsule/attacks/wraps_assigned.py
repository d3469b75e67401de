# functools.update_wrapper copies any attribute it is told to
import functools
class Spy:
    def __setattr__(self, name, value):
        if name == "__globals__": print("ESCAPED", value)
def f(): pass
functools.update_wrapper(Spy(), f, assigned=["__globals__"])
