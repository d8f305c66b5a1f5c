"""The program `rspmn`, and `python -m rspmn`."""

import sys


def run() -> None:
    """Load the command line and run the command of the shell's arguments."""
    try:
        from rspmn import cli
    except KeyboardInterrupt:  # while it loads, nobody else can say so
        sys.stderr.write("rspmn: interrupted; no file was left incomplete\n")
        sys.exit(130)
    cli.run()


if __name__ == "__main__":
    run()
