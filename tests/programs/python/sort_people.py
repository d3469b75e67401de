"""Print the oldest people of a small team, ties broken by name."""

import sys
from dataclasses import dataclass
from operator import attrgetter


@dataclass(frozen=True)
class Person:
    name: str
    age: int
    city: str


PEOPLE = [
    Person("Grace", 45, "New York"),
    Person("Alan", 41, "London"),
    Person("Linus", 54, "Portland"),
    Person("Ada", 36, "London"),
    Person("Barbara", 45, "Boston"),
]


def oldest(people, count):
    by_name = sorted(people, key=attrgetter("name"))
    return sorted(by_name, key=attrgetter("age"), reverse=True)[:count]


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else len(PEOPLE)
    for rank, person in enumerate(oldest(PEOPLE, count), start=1):
        print(f"{rank}. {person.name:<8} {person.age:>3}  {person.city}")


if __name__ == "__main__":
    main()
