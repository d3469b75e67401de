"""Integers, fractions and decimals beyond what a machine word holds."""

from decimal import Decimal, getcontext
from fractions import Fraction
from math import comb, factorial, isqrt


def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def digits_of_e(places):
    getcontext().prec = places + 5
    total, term = Decimal(0), Decimal(1)
    n = 1
    while term > Decimal(10) ** -(places + 3):
        total += term
        term /= n
        n += 1
    return str(total)[: places + 2]


def main():
    print("fib(300) =", fibonacci(300))
    print("50! has", len(str(factorial(50))), "digits")
    print("C(100, 50) =", comb(100, 50))
    print("isqrt(10**40 - 1) =", isqrt(10**40 - 1))
    print("2**127 - 1 mod 97 =", pow(2, 127, 97) - 1)
    print("harmonic(20) =", sum((Fraction(1, k) for k in range(1, 21)), Fraction()))
    print("e =", digits_of_e(50))


main()
