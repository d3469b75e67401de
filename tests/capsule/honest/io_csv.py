"""In-memory files, csv, struct, zlib, uuid, difflib, pprint."""
import io, csv, struct, zlib, uuid, difflib, pprint, calendar, unicodedata, types
out = io.StringIO()
w = csv.DictWriter(out, ["a", "b"], lineterminator="\n"); w.writeheader(); w.writerow({"a": 1, "b": "x,y"})
print(out.getvalue(), list(csv.reader(["1,2", "3,4"])))
print("to a file", file=out); print(len(out.getvalue()))
print(struct.pack("<I", 5), zlib.decompress(zlib.compress(b"hello")), uuid.uuid5(uuid.NAMESPACE_DNS, "x"), len(str(uuid.uuid4())))
print(difflib.get_close_matches("appel", ["ape", "apple"]), calendar.monthrange(2024, 2)[1], unicodedata.name("\u00e9"))
pprint.pprint({"b": 1, "a": [1, 2]})
n = types.SimpleNamespace(a=1); n.b = 2; print(n)
