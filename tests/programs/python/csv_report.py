"""Write a CSV file, read it back, and leave a JSON summary next to it."""

import csv
import json
import tempfile
from collections import defaultdict
from pathlib import Path

SALES = [
    ("north", "apples", 12, 0.50),
    ("south", "pears", 7, 0.75),
    ("north", "pears", 3, 0.75),
    ("east", "plums", 20, 0.20),
    ("south", "apples", 9, 0.50),
]


def write_sales(path):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["region", "fruit", "count", "price"])
        writer.writerows(SALES)


def summarize(path):
    totals = defaultdict(float)
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            totals[row["region"]] += int(row["count"]) * float(row["price"])
    return {region: round(total, 2) for region, total in sorted(totals.items())}


def main():
    sales = Path("sales.csv")
    write_sales(sales)
    summary = summarize(sales)
    Path("report.json").write_text(json.dumps(summary, indent=2) + "\n")

    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "copy.csv"
        copy.write_bytes(sales.read_bytes())
        print("lines:", len(copy.read_text().splitlines()))

    print(json.dumps(summary))
    print("files:", sorted(p.name for p in Path().iterdir() if p.suffix in {".csv", ".json"}))


if __name__ == "__main__":
    main()
