"""Collections, sorting, comprehensions."""
from collections import Counter, OrderedDict, defaultdict, deque, ChainMap, UserDict
from collections.abc import Iterable, Mapping
import collections.abc as cabc
import heapq, bisect, operator, copy, itertools
d = defaultdict(list)
for w in "the cat the dog a cat".split(): d[len(w)].append(w)
print(dict(d), Counter("mississippi").most_common(2), deque([1, 2, 3], maxlen=2), ChainMap({"a": 1}, {"b": 2})["b"])
print(sorted(["b", "A", "c"], key=str.lower, reverse=True), sorted([(2, "x"), (1, "y")], key=operator.itemgetter(1)))
h = [5, 1, 3]; heapq.heapify(h); print(heapq.heappop(h), bisect.bisect([1, 3, 5], 4), isinstance([], Iterable), isinstance({}, cabc.Mapping))
print({k: v for k, v in zip("abc", range(3))}, {x % 3 for x in range(9)}, [y for x in [[1], [2]] for y in x], (n := 10) + n)
a = [[1], [2]]; b = copy.deepcopy(a); b[0].append(9); print(a, b, copy.copy(a) == a)
class Low(UserDict):
    def __setitem__(self, k, v): super().__setitem__(k.lower(), v)
l = Low(); l["ABC"] = 1; print(l)
class Ro(Mapping):
    def __init__(self): self._d = {"x": 1}
    def __getitem__(self, k): return self._d[k]
    def __iter__(self): return iter(self._d)
    def __len__(self): return len(self._d)
print(dict(Ro()), "x" in Ro(), Ro().get("q"))
first, *rest = range(4); print(first, rest, [*rest, *"ab"], {**{"a": 1}, "b": 2}, list(itertools.chain([1], [2])), list(enumerate("ab", 1)))
x = bytearray(b"abc"); x[0] = 65; print(x, bytes(x), sum([1, 2]), max(3, 4), any([0, 1]), all([]), list(reversed([1, 2])), divmod(7, 2), round(2.567, 2))
