"""Run other programs: capture output, feed input, notice failure."""

import subprocess
import sys


def run(command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=20)


def main():
    listing = run(["sort", "-r"], "pear\napple\nplum\n")
    print("sorted:", listing.stdout.split())

    child = run([sys.executable, "-c", "print(sum(range(101)))"])
    print("child said:", child.stdout.strip())

    failed = run(["sh", "-c", "echo broken >&2; exit 7"])
    print("status:", failed.returncode, "stderr:", failed.stderr.strip())

    try:
        run(["no-such-program"])
    except FileNotFoundError:
        print("no-such-program: not found")

    producer = subprocess.Popen(["printf", "a\\nb\\na\\n"], stdout=subprocess.PIPE)
    consumer = subprocess.run(["grep", "-c", "a"], stdin=producer.stdout, capture_output=True, text=True)
    producer.stdout.close()
    producer.wait()
    print("lines with a:", consumer.stdout.strip())


if __name__ == "__main__":
    main()
