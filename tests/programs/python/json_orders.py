"""Read orders as JSON from standard input and print what each customer owes."""

import json
import sys
from collections import Counter


def totals(orders):
    owed = Counter()
    for order in orders:
        for item in order["items"]:
            owed[order["customer"]] += item["quantity"] * item["cents"]
    return owed


def main():
    orders = json.load(sys.stdin)
    owed = totals(orders)
    for customer, cents in owed.most_common():
        print(f"{customer}: {cents / 100:.2f}")
    json.dump({"customers": len(owed), "cents": sum(owed.values())}, sys.stdout, sort_keys=True)
    print()


if __name__ == "__main__":
    main()
