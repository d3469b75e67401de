from .figures import Shape


def table(shapes: list[Shape]) -> str:
    rows = [f"{shape.name:<10}{shape.area():>8.2f}" for shape in sorted(shapes, key=lambda s: s.area())]
    return "\n".join(rows)
