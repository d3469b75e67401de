"""Newton's method with a test of convergence that never holds."""


def square_root(value):
    guess = value
    steps = 0
    while guess * guess != value:
        guess = (guess + value / guess) / 2
        steps += 1
    return guess, steps


def main():
    root, steps = square_root(9.0)
    print(f"root of 9 is {root} after {steps} steps", flush=True)
    root, steps = square_root(2.0)
    print(f"root of 2 is {root} after {steps} steps")


if __name__ == "__main__":
    main()
