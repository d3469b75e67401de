"""Strings: format, format_map, f-strings, re, json, textwrap, string."""
import json, re, textwrap, string, base64, hashlib, html
class V:
    x = [10, 20]
print("{} {1.x[1]} {n!r:>6} {{}}".replace("{}", "{0}", 1).format("a", V, n="q"), "{:>8.2f}|{:<4}|{:^5}|{:,}".format(3.14159, "a", "b", 1234567))
print("{a}-{b}".format_map({"a": 1, "b": 2}), "{:{w}}".format("x", w=4) + "|", ", ".join(map("{:02d}".format, [1, 2])), format(255, "x"))
print(f"{V.x!r:>10} {3.14159:.2f} {'a' if 1 else 'b'} {1+1=}")
print(re.sub(r"(\w+)@(\w+)", lambda m: m.group(2) + "@" + m.group(1), "me@home you@work"), re.findall(r"\d+", "1 22 333"), re.compile("a", re.I).match("A").span())
print(json.dumps({"b": [1, None, True], "a": {"x": 1.5}}, sort_keys=True, indent=1), json.loads("[1, 2]"))
class Enc(json.JSONEncoder):
    def default(self, o): return sorted(o) if isinstance(o, set) else super().default(o)
print(json.dumps({"s": {3, 1}}, cls=Enc))
try: json.loads("{")
except json.JSONDecodeError as e: print(e.msg)
print(textwrap.fill("the quick brown fox jumps", 10), string.ascii_lowercase[:5], string.Template("$a b").substitute(a=1), html.escape("<a>"))
print(base64.b64encode(b"hello").decode(), hashlib.sha256(b"x").hexdigest()[:16], "%s %05d" % ("a", 42), "a,b".split(","))
print("caf\u00e9".encode("utf-8"), "x".center(5, "*"), "abc"[::-1], str(b"a", "ascii"))
