"""Verifies a receipt with nothing of ours: Ed25519 as RFC 8032 has it, DSSE by hand. Prints the statement."""

import base64
import hashlib
import json
import sys

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def add(a, b):
    x1, y1, z1, t1 = a
    x2, y2, z2, t2 = b
    m, n = (y1 - x1) * (y2 - x2) % P, (y1 + x1) * (y2 + x2) % P
    c, d = 2 * t1 * t2 * D % P, 2 * z1 * z2 % P
    e, f, g, h = n - m, d - c, d + c, n + m
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def multiply(scalar, point):
    total = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            total = add(total, point)
        point = add(point, point)
        scalar >>= 1
    return total


def recover(y, sign):
    assert y < P
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    assert (x * x - square) % P == 0, "no point"
    assert x or not sign
    return P - x if x & 1 != sign else x


def point(text):
    number = int.from_bytes(text, "little")
    y, sign = number & (1 << 255) - 1, number >> 255
    x = recover(y, sign)
    return (x, y, 1, x * y % P)


def same(a, b):
    return (a[0] * b[2] - b[0] * a[2]) % P == 0 and (a[1] * b[2] - b[1] * a[2]) % P == 0


def is_signed(public, message, signature):
    s = int.from_bytes(signature[32:], "little")
    assert s < L, "not the one form of the signature"
    y = 4 * pow(5, P - 2, P) % P
    x = recover(y, 0)
    hashed = hashlib.sha512(signature[:32] + public + message).digest()
    left = multiply(s, (x, y, 1, x * y % P))
    return same(left, add(point(signature[:32]), multiply(int.from_bytes(hashed, "little") % L, point(public))))


envelope = json.load(open(sys.argv[1]))
public = bytes.fromhex(open(sys.argv[2]).read())
body = base64.b64decode(envelope["payload"], validate=True)
kind = envelope["payloadType"].encode()
message = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(body), body)
(signature,) = envelope["signatures"]
assert signature["keyid"] == hashlib.sha256(public).hexdigest()
raw = base64.b64decode(signature["sig"], validate=True)
assert len(raw) == 64 and is_signed(public, message, raw), "bad signature"
# And one that is none, so that this can fail.
assert not is_signed(public, message + b"x", raw)
sys.stdout.write(body.decode())
