"""The command line: each command is a few lines over the library, in a module for its group.

On bad input it prints one sentence on standard error and exits with code 2.
"""

import argparse
import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence

from rspmn.cli.arguments import parser
from rspmn.errors import RspmnError

__all__ = ["main", "run"]

#: The module and function of each command, imported when it is run, and a line about it.
COMMANDS = {
    "check": ("queries", "check", "check that a model or a schema.toml is valid"),
    "info": ("queries", "show_info", "show the variables and the size of a model"),
    "meu": ("queries", "show_meu", "maximum expected utility, from the start or from a state"),
    "act": ("queries", "show_actions", "value of every action in a state, best first"),
    "decide": ("queries", "show_actions", "the same as act"),
    "explain": ("explaining", "explain", "why an action is best in a state, and what decides it"),
    "draw": ("queries", "draw", "draw a model as .svg, .png or .dot"),
    "doctor": ("doctoring", "doctor", "describe a log and report possible problems"),
    "schema": ("doctoring", "propose_schema", "propose a schema.toml for a log, to be edited"),
    "learn": ("learning", "learn", "learn a recurrent model from a log of episodes"),
    "policy": ("logs", "show_policy", "the best decision in every state, as a table"),
    "evaluate": ("evaluating", "evaluate", "what a policy is worth, by a model and a log"),
    "loglik": ("logs", "show_likelihood", "log-likelihood of the episodes of a log"),
    "sample": ("logs", "sample", "sample episodes from a model"),
    "domains": ("domains", "list_domains", "list the domains that logs can be generated of"),
    "generate": ("domains", "generate", "generate a log of a domain"),
    "reproduce": ("domains", "reproduce", "the paper's tables, beside the exact optimum"),
    "learn-spmn": ("learning", "learn_single_shot", "learn a model from a table of past decisions"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a character the terminal lacks is shown as "?"
            stream.reconfigure(errors="replace")
    try:
        arguments = parser({name: about for name, (_, _, about) in COMMANDS.items()}).parse_args(
            argv
        )
        code = _function(arguments.command)(arguments)
        if sys.stdout is not None:  # it is None when the shell closed it
            sys.stdout.flush()
    except RspmnError as error:
        print(f"rspmn: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return _interrupted()
    except RuntimeError as error:  # DuckDB raises it on Ctrl-C
        if "interrupted" not in str(error).lower():
            raise
        return _interrupted()
    except BrokenPipeError:  # the reader of the pipe has ended
        _close_stdout()
        return 141
    except OSError as error:  # commands report errors of their files; this is standard output
        _close_stdout()
        print(f"rspmn: cannot write the output: {error.strerror}", file=sys.stderr)
        return 2
    return code or 0


def _interrupted() -> int:
    print("rspmn: interrupted; no file was left incomplete", file=sys.stderr)
    return 130


def run() -> None:
    """Run the command of the shell's arguments, and exit with its code."""
    sys.exit(main())


def _function(command: str) -> Callable[[argparse.Namespace], int | None]:
    module, name, _ = COMMANDS[command]
    found: Callable[[argparse.Namespace], int | None] = getattr(
        importlib.import_module(f"rspmn.cli.{module}"), name
    )
    return found


def _close_stdout() -> None:
    """Keep Python from failing again when it flushes on exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
