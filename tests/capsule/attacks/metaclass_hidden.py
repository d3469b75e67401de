# a metaclass passed through ** and a base that is a metaclass
done = []
try:
    class M(type): pass
    done.append(M)
except TypeError as e: print(e)
try:
    class A(**{"meta" + "class": lambda *a: print("ESCAPED")}): pass
except TypeError as e: print(e)
try:
    class M2(type(int)): pass
    done.append(M2)
except TypeError as e: print(e)
if done: print("ESCAPED", done)
