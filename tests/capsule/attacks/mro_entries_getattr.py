# an object whose __getattr__ answers __mro_entries__, first harmlessly
import dataclasses
class O:
    n = 0
    def __getattr__(self, name):
        self.n += 1
        bases = (object,) if self.n < 3 else (type(dataclasses.field()),)
        return lambda b: bases
class F(O()): pass
print("ESCAPED")
