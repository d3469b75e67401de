"""Generators, closures, decorators, context managers, coroutines by hand."""
import functools, itertools
from contextlib import contextmanager, suppress, ExitStack
def fib():
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b
print(list(itertools.islice(fib(), 10)), [*map(lambda x: x * 2, range(3))])
def echo():
    got = None
    while True:
        got = yield got
e = echo(); next(e); print(e.send(5)); e.close()
def outer():
    yield from (1, 2)
    return 3
def deleg():
    r = yield from outer()
    print("returned", r)
print(list(deleg()))
def timed(times):
    def deco(f):
        @functools.wraps(f)
        def inner(*a, **k):
            inner.calls += 1
            return [f(*a, **k) for _ in range(times)]
        inner.calls = 0
        return inner
    return deco
@timed(2)
def greet(name, *, end="!"):
    """greets"""
    return "hi " + name + end
print(greet("bob", end="?"), greet.__name__, greet.__doc__, greet.calls)
@contextmanager
def tag(n):
    print("<" + n)
    try: yield n
    finally: print(n + ">")
with tag("a") as x, tag("b"): print(x)
with suppress(KeyError): {}["x"]
with ExitStack() as st: st.callback(print, "bye")
class CM:
    def __enter__(self): return self
    def __exit__(self, t, v, tb): print(t.__name__, v); return True
with CM(): raise ValueError("inside")
@functools.lru_cache(maxsize=None)
def f(n): return n if n < 2 else f(n - 1) + f(n - 2)
print(f(60), f.cache_info().hits)
async def co(x): return x + 1
async def top(): return await co(1) + await co(2)
c = top()
try: c.send(None)
except StopIteration as s: print(s.value)
def counter():
    n = 0
    def inc():
        nonlocal n
        n += 1
        return n
    return inc
c = counter(); c(); print(c())
class Lazy:
    @functools.cached_property
    def v(self): print("once"); return 42
l = Lazy(); print(l.v, l.v)
print(functools.reduce(lambda a, b: a * b, range(1, 6)), functools.partial(pow, 2)(5))
