# modules inside modules: random._os, json.codecs, re.sys, enum.sys ...
import random, json, re, enum, collections, datetime, statistics, uuid, base64, hashlib, typing, dataclasses, copy, textwrap, heapq, csv, io, contextlib, decimal, string, uuid, secrets, hmac, html, pprint
for m in (random, json, re, enum, collections, datetime, statistics, uuid, base64, typing, dataclasses, copy, csv, io, contextlib, decimal, string, hmac, html, pprint):
    for n in ("os", "sys", "codecs", "io", "open", "subprocess", "builtins", "types", "inspect", "keyword", "functools", "copyreg", "re", "abc_", "FileIO", "open_code", "OpenWrapper"):
        if hasattr(m, n): print("ESCAPED", m, n)
