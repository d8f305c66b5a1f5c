"""The command line: thin, each command a few lines over the library.

Bad input is answered with one sentence on standard error and exit code 2.
"""

import argparse
import importlib
import io
import os
import re
import sys
from collections.abc import Callable, Sequence

from rspmn import __version__
from rspmn.errors import RspmnError

__all__ = ["main", "run"]

#: The functions behind the commands, by module and name: imported when they are run.
COMMANDS = {
    "check": ("queries", "check", "say whether a model or schema.toml is valid, or what is not"),
    "info": ("queries", "show_info", "say what a model holds"),
    "meu": ("queries", "show_meu", "maximum expected utility, from the start or from a state"),
    "act": ("queries", "show_actions", "what every action is worth in a state, best first"),
    "decide": ("queries", "show_actions", "the same as act"),
    "draw": ("queries", "draw", "draw a model as .svg, .png or .dot"),
    "doctor": ("doctoring", "doctor", "what a log holds, and what may be wrong with it"),
    "schema": ("doctoring", "propose_schema", "propose a schema.toml for a log, to be edited"),
    "learn": ("logs", "learn", "learn a recurrent model from a log of episodes"),
    "policy": ("logs", "show_policy", "the best decision in every state, as a table"),
    "loglik": ("logs", "show_likelihood", "how likely the episodes of a log are"),
    "sample": ("logs", "sample", "draw episodes from a model"),
    "domains": ("domains", "list_domains", "the domains that logs can be generated of"),
    "generate": ("domains", "generate", "write a log of a domain"),
    "reproduce": ("reproducing", "reproduce", "the paper's tables again, beside the optimum"),
    "learn-spmn": ("learning", "learn_single_shot", "learn from a table of past decisions"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a sign shows a "?"
            stream.reconfigure(errors="replace")
    try:
        arguments = _parser().parse_args(argv)
        code = _function(arguments.command)(arguments)
        if sys.stdout is not None:  # it is None when the shell closed it
            sys.stdout.flush()
    except RspmnError as error:
        print(f"rspmn: {_with_flags(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return _interrupted()
    except RuntimeError as error:  # what DuckDB makes of Ctrl-C
        if "interrupted" not in str(error).lower():
            raise
        return _interrupted()
    except BrokenPipeError:  # the reader of a pipe went away: nothing to say to anybody
        _close_stdout()
        return 141
    except OSError as error:  # commands name their own files; what is left is standard output
        _close_stdout()
        print(f"rspmn: cannot write the output: {error.strerror}", file=sys.stderr)
        return 2
    return code or 0


def _interrupted() -> int:
    print("rspmn: interrupted; nothing was written", file=sys.stderr)
    return 130


def _with_flags(message: str) -> str:
    """Return a message with flags where it speaks of parameters."""
    message = message.replace("gaps='allow'", "--gaps").replace("time=None", "--in-order")
    found = re.sub(r"\b(episode|time|terminated)='\.\.\.'", r"--\1 COLUMN", message)
    return re.sub(
        r"\b(ending|memory_limit)='(\w+)'", lambda m: f"--{m[1].replace('_', '-')} {m[2]}", found
    )


def run() -> None:
    """Run the command that the shell asked for, and exit with its code."""
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rspmn", description="Recurrent sum-product-max networks: decisions from logs."
    )
    parser.add_argument("--version", action="version", version=f"rspmn {__version__}")
    commands = parser.add_subparsers(
        title="commands", required=True, metavar="COMMAND", dest="command"
    )
    subs = {
        name: commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        for name, (_, _, summary) in COMMANDS.items()
    }
    subs["check"].add_argument("file", help="a model file, or a schema ending in .toml")
    for name in ("info", "meu", "act", "decide", "draw", "policy", "loglik", "sample"):
        subs[name].add_argument("model", help="a model file")
    for name in ("meu", "act", "decide"):
        _add_question(subs[name])
    _add_picture(subs["draw"])
    subs["learn-spmn"].add_argument(
        "table", help="a CSV, TSV, Parquet or JSON lines file, one row per decision"
    )
    subs["learn-spmn"].add_argument("--weights", help="a column: how often each row occurred")
    _add_log(subs["learn"])
    _add_log(subs["doctor"])
    subs["doctor"].add_argument("--schema", help="a schema.toml; guessed if not given")
    for name in ("learn", "doctor"):
        subs[name].add_argument(
            "--memory-limit", metavar="SIZE",
            help="what reading files may take, such as 500MB; default 1GB; the rest goes to disk",
        )  # fmt: skip
    subs["schema"].add_argument(
        "log", nargs="+", help="CSV, TSV, Parquet or JSON lines files, or a pattern of them"
    )
    subs["schema"].add_argument("-o", "--output", help="the schema.toml to write")
    subs["schema"].add_argument("--force", action="store_true", help="write over an old one")
    for name in ("learn", "learn-spmn"):
        _add_learning(subs[name])
    _add_em(subs["learn"])
    _add_log(subs["loglik"])
    subs["loglik"].add_argument("-o", "--output", help="a .csv for the value of each episode")
    _add_policy(subs["policy"])
    _add_sampling(subs["sample"])
    _add_generating(subs["generate"])
    _add_reproducing(subs["reproduce"])
    for sub in subs.values():
        sub.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _add_question(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--state", "--given", nargs="+", action="extend", metavar="NAME=VALUE", default=None,
        help="what is known, decisions already made included; NAME= leaves it open",
    )  # fmt: skip
    sub.add_argument("--horizon", type=int, help="steps to go; without it, in the limit of many")
    sub.add_argument("--discount", type=float, default=1.0, help="per step, default 1")
    _add_untried(sub)


def _add_untried(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--allow-untried", action="store_true",
        help="also decide what was never tried in a state, by what it did elsewhere",
    )  # fmt: skip


def _add_picture(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("-o", "--output", required=True, help="the picture to write")
    sub.add_argument(
        "--part", choices=["template", "top", "unfolded"], default=None,
        help="which network of a recurrent model, default the template",
    )  # fmt: skip
    sub.add_argument("--steps", type=int, default=2, help="of the unfolded network, default 2")


def _add_learning(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--schema", required=True, help="a schema.toml")
    sub.add_argument("-o", "--output", required=True, help="the model to write")
    sub.add_argument("--paper", action="store_true", help="RDC and k-means, as in the paper")
    sub.add_argument("--seed", type=_seed, default=0, help="default 0")
    sub.add_argument("--max-nodes", type=int, help="end learning at so many nodes")
    sub.add_argument("--max-depth", type=int, help="at most so many sums on a path")
    sub.add_argument("--max-seconds", type=float, help="end learning after so many seconds")


def _add_log(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "log", nargs="+",
        help="CSV, TSV, Parquet or JSON lines files, one row per step; or a pattern of them",
    )  # fmt: skip
    sub.add_argument(
        "--episode",
        help="the column of episodes; default: as [log] of the schema.toml says, or episode",
    )
    sub.add_argument("--time", help="the column that orders the steps; likewise, or time")
    sub.add_argument(
        "--in-order", action="store_true", help="rows are in order: there is no time column"
    )
    sub.add_argument(
        "--terminated",
        help="a column: whether the episode terminated; likewise, or terminated, if there is one",
    )
    sub.add_argument(
        "--ending", choices=["end", "cut", "short", "final_row"],
        help="without such a column: all terminated, all were cut, those shorter than the longest "
        "terminated, or those with a last row that has no decision did",
    )  # fmt: skip
    sub.add_argument(
        "--gaps", action=argparse.BooleanOptionalAction, default=None,
        help="whether whole-number times may leave some out",
    )  # fmt: skip
    sub.add_argument(
        "--wide", action=argparse.BooleanOptionalAction, default=None,
        help="whether a row is an episode, with a block of columns for each step",
    )  # fmt: skip


def _add_em(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--successors", "--future", choices=["factored", "counts"], default=None,
        help="what weighs next states: factors that branches share, the default, or counts alone",
    )  # fmt: skip
    sub.add_argument("--em-passes", type=int, default=0, help="further passes of EM, default 0")
    sub.add_argument("--soft-em", action="store_true", help="soft EM: divide steps by probability")
    sub.add_argument(
        "--time-limit", type=int,
        help="steps after which all episodes were cut; default: found in the log; 0: none",
    )  # fmt: skip


def _add_policy(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--horizon", type=int, help="steps; without it, in the limit of many")
    sub.add_argument("--discount", type=float, default=1.0, help="per step, default 1")
    sub.add_argument("-t", type=int, default=0, help="the time step, default 0")
    _add_untried(sub)
    sub.add_argument("-o", "--output", help="a .csv to write")


def _add_sampling(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--episodes", type=int, default=100, help="default 100")
    sub.add_argument("--horizon", type=int, required=True, help="steps of an episode at most")
    sub.add_argument("--best", action="store_true", help="decide best, not uniformly at random")
    sub.add_argument("--discount", type=float, default=1.0, help="for --best, default 1")
    _add_untried(sub)
    sub.add_argument("--seed", type=_seed, default=0, help="default 0")
    sub.add_argument("-o", "--output", required=True, help="a .csv to write")


def _add_generating(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("domain", metavar="DOMAIN", help="as `rspmn domains` lists them")
    sub.add_argument(
        "--files", type=int, default=1,
        help="divide the log into so many, NAME-0, NAME-1, …; one is in memory at a time",
    )  # fmt: skip
    sub.add_argument("--episodes", type=int, help="default: as many as the paper's log has")
    sub.add_argument("--steps", type=int, help="of an episode at most; default: the paper's")
    sub.add_argument(
        "--seed", type=_seed, default=0, help="default 0; the same seed, the same file"
    )
    sub.add_argument(
        "--layout", choices=["flags", "final", "padded", "terminal_row"], default="flags",
        help="how the end of an episode shows: by the column terminated (flags, the default), also "
        "with the state after the last step (final), by staying in the last state (padded), or by "
        "one row in it (terminal_row)",
    )  # fmt: skip
    sub.add_argument("--wide", action="store_true", help="one row per episode, as in the paper")
    sub.add_argument("--schema", help="also write the schema, a .toml to learn it with")
    sub.add_argument("-o", "--output", required=True, help="a .csv, .tsv, .parquet or .jsonl")


def _add_reproducing(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--domains", nargs="+", metavar="DOMAIN", help="default: all seven")
    sub.add_argument(
        "--scale", type=float, default=1.0, help="of the numbers of episodes, default 1"
    )
    sub.add_argument("--seeds", type=int, default=5, help="logs of each kind, default 5")
    sub.add_argument(
        "--baselines", nargs="*", default=["table", "clone"],
        help="table, clone, spmn (of whole sequences), bcq (needs d3rlpy); default table clone",
    )  # fmt: skip
    sub.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="default: all cores")
    sub.add_argument(
        "-o", "--output", required=True,
        help="a folder; what is finished is kept in it, and the same command goes on from there",
    )  # fmt: skip


def _seed(text: str) -> int:
    if int(text) < 0:
        raise argparse.ArgumentTypeError(f"expected 0 or more, found {text}")
    return int(text)
