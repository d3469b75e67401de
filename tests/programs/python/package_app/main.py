"""Compare shapes that live in a package next to this file."""

from shapes import Circle, Rectangle, largest
from shapes.report import table


def main():
    shapes = [Rectangle(3, 4), Circle(2), Rectangle(10, 1)]
    print(table(shapes))
    print("largest:", largest(shapes).name)


if __name__ == "__main__":
    main()
