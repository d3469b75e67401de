"""Divide a bill among the people of a table; nobody sits at the last one."""


class Table:
    def __init__(self, number, people, bill):
        self.number = number
        self.people = people
        self.bill = bill

    def share(self):
        return self.bill / self.people


def main():
    tables = [Table(1, 4, 88.0), Table(2, 2, 35.5), Table(3, 0, 12.0)]
    for table in tables:
        print(f"table {table.number}: {table.share():.2f} each", flush=True)


if __name__ == "__main__":
    main()
