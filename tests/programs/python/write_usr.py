"""An installer that tries the system's directory first and its own second."""

from pathlib import Path

SCRIPT = "#!/bin/sh\necho hello\n"


def install(directories):
    for directory in directories:
        target = directory / "x"
        try:
            target.write_text(SCRIPT)
        except OSError:
            continue
        target.chmod(0o755)
        return target
    return None


def main():
    installed = install([Path("/usr"), Path.cwd()])
    print("installed:", installed is not None)
    print("size:", installed.stat().st_size)


if __name__ == "__main__":
    main()
