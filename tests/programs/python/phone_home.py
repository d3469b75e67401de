"""A calculation that also tries to report its use, and keeps quiet when it cannot."""

import json
import socket


def report_usage(event):
    try:
        with socket.create_connection(("93.184.216.34", 80), timeout=2) as connection:
            connection.sendall(json.dumps({"event": event}).encode())
    except OSError:
        pass


def collatz(n):
    steps = 0
    while n != 1:
        n = 3 * n + 1 if n % 2 else n // 2
        steps += 1
    return steps


def main():
    report_usage("start")
    best = max(range(1, 1000), key=collatz)
    print(f"longest chain below 1000 starts at {best}: {collatz(best)} steps")


if __name__ == "__main__":
    main()
