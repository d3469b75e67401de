"""Runs the capsule's corpus directly, without a cell:  run.py [interpreter]

Every attack must not print ESCAPED (its exit status is its own affair, but the
capsule must not have broken: its own internal-error line fails the test).
Every honest program must print exactly its .out and exit 0.
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

here = Path(__file__).resolve().parent
capsule = here.parent.parent / "crates/engine/src/capsule/capsule.py"
python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
only = sys.argv[2] if len(sys.argv) > 2 else ""


def run(program, folder):
    (Path(folder) / "state.json").write_text('{"greeting": "hello", "list": [1, {"a": 2}]}')
    env = {"PATH": os.environ.get("PATH", ""), "HOTCELL_STATE": f"{folder}/state.json", "LANG": "C.UTF-8",
           "HOTCELL_EVENTS": f"{folder}/events.jsonl", "HOTCELL_CONFIG": "COLOUR,MISSING,HOTCELL_STATE",
           "COLOUR": "green", "SECRET": "not for the guest"}
    return subprocess.run([python, "-I", "-S", "-B", str(capsule), str(program)], env=env, cwd=folder,
                          input=b"first\nsecond\n", capture_output=True, timeout=60)


older = subprocess.run([python, "-c", "import sys; sys.exit(sys.version_info < (3, 10))"]).returncode
failed = count = 0
for program in sorted((here / "attacks").glob("*.py")) + sorted((here / "honest").glob("*.py")):
    if only not in program.name:
        continue
    if "needs 3.10" in program.read_text("utf-8", "replace") and older:
        continue
    count += 1
    with tempfile.TemporaryDirectory() as folder:
        done = run(program, folder)
        if program.parent.name == "attacks":
            fine = b"ESCAPED" not in done.stdout and b"Zen of Python" not in done.stdout and b"ESCAPED" not in done.stderr.splitlines()[-1:] \
                and done.returncode >= 0 and b'capsule.py", line' not in done.stderr
        else:
            fine = done.returncode == 0 and done.stdout == program.with_suffix(".out").read_bytes()
    if not fine or only:
        print("ok" if fine else "FAILED", program.parent.name, program.name, "exit", done.returncode)
        print((done.stdout + done.stderr).decode("utf-8", "replace")[-1500:])
    failed += not fine
print(f"{count - failed} of {count} as they should be")
sys.exit(1 if failed else 0)
