"""The command line: each command is a few lines over the library, in a module for its group.

On bad input it prints one sentence on standard error and exits with code 2. `ExitCode` has the
others.
"""

import io
import os
import sys
import traceback
from collections.abc import Sequence

from rspmn.cli.commands import COMMANDS
from rspmn.cli.console import ExitCode
from rspmn.cli.dispatch import run_words
from rspmn.cli.framework import COMPLETION, Commands
from rspmn.errors import RspmnError

__all__ = ["COMMANDS", "ExitCode", "main", "run"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a character the terminal lacks is shown as "?"
            stream.reconfigure(errors="replace")
    try:
        code = run_words(Commands(COMMANDS), sys.argv[1:] if argv is None else argv)
        if sys.stdout is not None:  # it is None when the shell closed it
            sys.stdout.flush()
    except RspmnError:  # with --verbose
        traceback.print_exc()
        return ExitCode.WRONG_INPUT
    except KeyboardInterrupt:
        print("rspmn: interrupted; no file was left incomplete", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except MemoryError:
        print("rspmn: not enough memory for this: ask for less, or use a larger machine",
              file=sys.stderr)  # fmt: skip
        return ExitCode.WRONG_INPUT
    except BrokenPipeError:  # the reader of the pipe has ended
        _close_stdout()
        return ExitCode.BROKEN_PIPE
    except OSError as error:  # commands report errors of their files; this is standard output
        _close_stdout()
        print(f"rspmn: cannot write the output: {error.strerror}", file=sys.stderr)
        return ExitCode.WRONG_INPUT
    return code


def run() -> None:
    """Run the command of the shell's arguments, and exit with its code."""
    asked = os.environ.get(COMPLETION)
    if asked:
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(Commands(COMMANDS), {}, "rspmn", COMPLETION, asked))
    sys.exit(main())


def _close_stdout() -> None:
    """Keep Python from failing again when it flushes on exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
