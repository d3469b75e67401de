"""Pull errors and slow requests out of a web server's log."""

import re
from collections import Counter

LOG = """\
10.0.0.1 - [12/Mar/2024:10:00:01] "GET /index.html" 200 0.012
10.0.0.2 - [12/Mar/2024:10:00:02] "POST /login" 403 0.104
10.0.0.1 - [12/Mar/2024:10:00:04] "GET /missing" 404 0.003
not a log line
10.0.0.3 - [12/Mar/2024:10:00:09] "GET /report" 500 2.750
10.0.0.2 - [12/Mar/2024:10:00:11] "GET /index.html" 200 0.015
"""

LINE = re.compile(
    r"""^(?P<host>\d{1,3}(?:\.\d{1,3}){3})\s-\s
        \[(?P<when>[^\]]+)\]\s
        "(?P<method>[A-Z]+)\s(?P<path>\S+)"\s
        (?P<status>\d{3})\s(?P<seconds>\d+\.\d+)$""",
    re.VERBOSE | re.MULTILINE,
)


def main():
    statuses = Counter()
    for match in LINE.finditer(LOG):
        statuses[match["status"][0] + "xx"] += 1
        if match["status"] >= "400":
            print(f'{match["status"]} {match["method"]} {match["path"]}')
        if float(match["seconds"]) > 1:
            print(f'slow: {match["path"]}')
    print(dict(sorted(statuses.items())))
    print(re.sub(r"(\d+)\.(\d+)\.\d+\.\d+", r"\1.\2.x.x", "from 192.168.7.9"))


main()
