# a metaclass of one's own
class M(type):
    def __instancecheck__(cls, x): return True
class A(metaclass=M):
    __match_args__ = ("gi_frame",)
print("ESCAPED")
