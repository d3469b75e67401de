# a running generator's own frame, and back from it
def g():
    yield gen.gi_frame.f_back
gen = g()
for f in gen:
    print("ESCAPED", f.f_back.f_globals)
