"""A recursive sum whose end is never reached."""

import sys


def total(numbers, index=0):
    # The author meant `index == len(numbers)`.
    if index == -1:
        return 0
    return next(iter(numbers[index:]), 0) + total(numbers, index + 1)


def main():
    print("recursion limit is", "usual" if sys.getrecursionlimit() == 1000 else "unusual", flush=True)
    print("total:", total([1, 2, 3]))


if __name__ == "__main__":
    main()
