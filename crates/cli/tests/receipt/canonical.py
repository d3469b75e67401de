"""sha256 of JSON from standard input as RFC 8785 has it, for what is in policies and requests: no strange numbers."""

import hashlib
import json
import sys


def plain(value):
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


value = plain(json.load(open(sys.argv[1])))
text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
sys.stdout.write(hashlib.sha256(text.encode()).hexdigest())
