"""Check settings and say by the exit code how it went."""

import sys

REQUIRED = ("host", "port", "user")


def parse(lines):
    settings = {}
    for line in lines:
        line = line.strip()
        if line and not line.startswith("#"):
            key, _, value = line.partition("=")
            settings[key.strip()] = value.strip()
    return settings


def main():
    settings = parse(sys.stdin)
    missing = [key for key in REQUIRED if key not in settings]
    print("settings:", ", ".join(sorted(settings)))
    if missing:
        print("missing:", ", ".join(missing), file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
