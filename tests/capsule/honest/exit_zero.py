"""exit() with no status ends well, and __del__ runs before."""
class D:
    def __del__(self): print("gone")
d = D()
print("before")
exit()
