"""The arguments of all commands. Nothing heavy is imported here: `rspmn --help` is quick."""

import argparse
import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rspmn import __version__
from rspmn.errors import did_you_mean
from rspmn.log_format import LogOptions


def parser(summaries: Mapping[str, str]) -> argparse.ArgumentParser:
    """Return the parser of all commands, given a line about each."""
    found = _Parser(
        prog="rspmn", description="Recurrent sum-product-max networks: decisions from logs."
    )
    found.commands = tuple(summaries)
    found.add_argument("--version", action="version", version=f"rspmn {__version__}")
    commands = found.add_subparsers(
        title="commands", required=True, metavar="COMMAND", dest="command"
    )
    subs = {
        name: commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        for name, summary in summaries.items()
    }
    subs["check"].add_argument("file", help="a model file, or a schema ending in .toml")
    models = ("info", "meu", "act", "decide", "explain", "draw", "policy", "loglik", "sample")
    for name in (*models, "evaluate"):
        subs[name].add_argument("model", help="a model file")
    for name in ("meu", "act", "decide", "explain"):
        _add_question(subs[name])
    _add_explaining(subs["explain"])
    for name in ("act", "decide"):
        subs[name].add_argument("--table", help="a file of states: what to do in each row")
        subs[name].add_argument(
            "--sure", action="store_true",
            help="also print how sure it is: 90 %% intervals, and how probably each action is best",
        )  # fmt: skip
        subs[name].add_argument("-o", "--output", help="a .csv file to write that to")
    _add_picture(subs["draw"])
    subs["learn-spmn"].add_argument(
        "table", help="a CSV, TSV, Parquet or JSON lines file, one row per decision"
    )
    subs["learn-spmn"].add_argument(
        "--weights", help="column with the number of times that each row occurred"
    )
    _add_log(subs["learn"])
    _add_log(subs["doctor"])
    subs["doctor"].add_argument(
        "--schema", help="a schema.toml; default: one proposed from the columns"
    )
    subs["doctor"].add_argument(
        "--single", action="store_true", help="a table of single decisions, one in each row"
    )
    for name in ("learn", "doctor"):
        subs[name].add_argument(
            "--memory-limit", metavar="SIZE",
            help="memory for reading files, such as 500MB; default 1GB; the rest goes to disk",
        )  # fmt: skip
    _add_log(subs["schema"])
    subs["schema"].add_argument("-o", "--output", help="the schema.toml to write")
    subs["schema"].add_argument("--force", action="store_true", help="overwrite an existing file")
    for name in ("learn", "learn-spmn"):
        _add_learning(subs[name])
    _add_em(subs["learn"])
    _add_log(subs["loglik"])
    _add_evaluating(subs["evaluate"])
    subs["loglik"].add_argument(
        "-o", "--output", help="a .csv file to write the log-likelihood of each episode to"
    )
    _add_policy(subs["policy"])
    _add_sampling(subs["sample"])
    _add_generating(subs["generate"])
    _add_reproducing(subs["reproduce"])
    for sub in subs.values():
        sub.add_argument("--json", action="store_true", help="print JSON")
    return found


class _Parser(argparse.ArgumentParser):
    """A parser that names what it does not know, and the nearest that it does.

    Names are looked at first: who misspells a required option is not told that it is lacking.
    """

    commands: Collection[str] = ()  # the parser of a command has none

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse arguments, the names among them being known."""
        given = list(sys.argv[1:] if args is None else args)
        before = given[: given.index("--")] if "--" in given else given
        options = [option for option in self._option_string_actions if option.startswith("--")]
        for word in before[:1] if self.commands else before:  # the rest is the command's to judge
            name = word.split("=")[0]
            if name.startswith("--") and name not in options:
                self.error(f"unknown option {name!r}: {did_you_mean(name, options)}")
            if self.commands and name[:1] not in ("", "-") and name not in self.commands:
                self.error(f"unknown command {name!r}: {did_you_mean(name, self.commands)}")
        return super().parse_known_args(given, namespace)


def _add_question(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--state", "--given", nargs="+", action="extend", metavar="NAME=VALUE", default=None,
        help="observed values, including decisions already made; NAME= means not observed",
    )  # fmt: skip
    _add_horizon(sub)


def _add_horizon(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--horizon", type=int, help="number of steps; without it, until the values converge"
    )
    _add_optimum(sub)


def _add_optimum(sub: argparse.ArgumentParser) -> None:
    """Add what the best decisions depend on besides the horizon."""
    sub.add_argument(
        "--discount", type=float, default=1.0, help="discount factor per step, default 1"
    )
    sub.add_argument(
        "--allow-untried", action="store_true",
        help="also consider decisions that were never tried in a state, with values extrapolated "
        "from other states",
    )  # fmt: skip
    sub.add_argument(
        "--forbid", action="append", default=[], metavar="RULE",
        help="a value that must not be chosen, or 'VALUE when CONDITION', as in 'vasopressor when "
        "map > 80'; with several decisions, DECISION=VALUE; may be repeated",
    )  # fmt: skip
    sub.add_argument(
        "--only", action="append", default=[], metavar="RULE",
        help="choose nothing but such values, or nothing else when the condition holds; may be "
        "repeated",
    )  # fmt: skip
    sub.add_argument(
        "--min-support", type=float, default=0.0, metavar="STEPS",
        help="do not choose what fewer logged steps support",
    )  # fmt: skip
    sub.add_argument(
        "--caution", type=float, metavar="DEVIATIONS",
        help="plan against the posterior, and depart from the maximum expected utility where that "
        "gains more than so many deviations; such as 0.2",
    )  # fmt: skip


def _add_explaining(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("-t", type=int, default=0, help="time step, default 0")
    sub.add_argument(
        "--log", nargs="+", help="files of the log: also show the logged steps nearest to the state"
    )
    sub.add_argument("-o", "--output", help="a .svg or .png to draw what the actions are worth")


def _add_picture(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("-o", "--output", required=True, help="the picture to write")
    sub.add_argument(
        "--part", choices=["template", "top", "unfolded"], default=None,
        help="which network of a recurrent model; default: the template",
    )  # fmt: skip
    sub.add_argument(
        "--steps", type=int, default=2, help="number of steps of the unfolded network, default 2"
    )


def _add_learning(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--schema", required=True, help="a schema.toml")
    sub.add_argument("-o", "--output", required=True, help="the model to write")
    sub.add_argument(
        "--paper", action="store_true", help="use the paper's settings: RDC and k-means"
    )
    sub.add_argument(
        "--availability", choices=["declared", "observed"],
        help="which decisions a state offers: those taken in states alike, unless the schema says "
        "otherwise (declared, the default), or only those taken in it (observed)",
    )  # fmt: skip
    sub.add_argument("--seed", type=_seed, default=0, help="random seed, default 0")
    sub.add_argument("--max-nodes", type=int, help="stop learning at this number of nodes")
    sub.add_argument("--max-depth", type=int, help="maximum number of sum nodes on a path")
    sub.add_argument("--max-seconds", type=float, help="stop learning after this number of seconds")


def _add_log(sub: argparse.ArgumentParser, option: str | None = None) -> None:
    """Add the files of a log, as arguments or as an option, and their format."""
    about = "CSV, TSV, Parquet or JSON lines files, one row per step; or a pattern of them"
    if option is None:
        sub.add_argument("log", nargs="+", help=about)
    else:
        sub.add_argument(option, nargs="+", required=True, help=about)
    sub.add_argument(
        "--episode",
        help="column that identifies the episode; default: that of [log] in the schema.toml, or "
        "episode",
    )
    sub.add_argument("--time", help="column that orders the steps; same default, or time")
    sub.add_argument(
        "--in-order", action="store_true", help="rows are in order: there is no time column"
    )
    sub.add_argument(
        "--terminated",
        help="column that is true in the last row of an episode that terminated; same default, or "
        "terminated if there is such a column",
    )
    sub.add_argument(
        "--ending", choices=["end", "cut", "short", "final_row"],
        help="why episodes ended, if no column says so. end: all terminated; cut: all were cut; "
        "short: those shorter than the longest terminated; final_row: those whose last row has no "
        "decision terminated",
    )  # fmt: skip
    sub.add_argument(
        "--gaps", action=argparse.BooleanOptionalAction, default=None,
        help="accept gaps between whole-number times",
    )  # fmt: skip
    sub.add_argument(
        "--drop-duplicates", action=argparse.BooleanOptionalAction, default=None,
        help="count rows once that are equal in all columns that are used",
    )  # fmt: skip
    sub.add_argument(
        "--step", metavar="LENGTH",
        help="length of a step, if times are measured: a number in their unit or, for dates, such "
        "as '4 hours'; the rows in one step are one",
    )  # fmt: skip
    sub.add_argument(
        "--wide", action=argparse.BooleanOptionalAction, default=None,
        help="each row is an episode, with a block of columns for each step",
    )  # fmt: skip


def _add_em(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--successors", "--future", choices=["factored", "counts"], default=None,
        help="estimate of the next state: factors shared by all branches, refined by counts (the "
        "default), or counts alone",
    )  # fmt: skip
    sub.add_argument("--em-passes", type=int, default=0, help="additional passes of EM, default 0")
    sub.add_argument("--soft-em", action="store_true", help="use soft EM instead of hard EM")
    sub.add_argument(
        "--time-limit", type=int,
        help="steps after which all episodes were cut; default: detected in the log; 0: none",
    )  # fmt: skip


def _add_policy(sub: argparse.ArgumentParser) -> None:
    _add_horizon(sub)
    sub.add_argument("-t", type=int, default=0, help="time step, default 0")
    sub.add_argument("-o", "--output", help="a .csv file to write")


def _add_evaluating(sub: argparse.ArgumentParser) -> None:
    _add_log(sub, "--log")
    sub.add_argument(
        "--policy",
        help="a .csv file of rules, uniform, practice or recommended; without it, the recommended "
        "policy is compared with current practice",
    )
    sub.add_argument("--horizon", type=int, help="number of steps; default: the longest episode's")
    sub.add_argument(
        "--discount", type=float, default=1.0, help="discount factor per step, default 1"
    )
    sub.add_argument(
        "--probability", metavar="COLUMN",
        help="column with the probability of each logged decision; default: estimated",
    )  # fmt: skip
    sub.add_argument("--draws", type=int, default=300, help="draws from the posterior, default 300")
    sub.add_argument("--seed", type=_seed, default=0, help="random seed, default 0")
    sub.add_argument(
        "--top", type=int, default=10, help="number of states to list without --policy, default 10"
    )


def _add_sampling(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--episodes", type=int, default=100, help="number of episodes, default 100")
    sub.add_argument(
        "--horizon", type=int, required=True, help="maximum number of steps of an episode"
    )
    sub.add_argument(
        "--best",
        action="store_true",
        help="take the best decisions; default: uniformly random ones",
    )
    _add_optimum(sub)
    sub.add_argument("--seed", type=_seed, default=0, help="random seed, default 0")
    sub.add_argument("-o", "--output", required=True, help="a .csv file to write")


def _add_generating(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("domain", metavar="DOMAIN", help="a name that `rspmn domains` lists")
    sub.add_argument(
        "--files", type=int, default=1,
        help="number of files to divide the log into: NAME-0, NAME-1, …",
    )  # fmt: skip
    sub.add_argument("--episodes", type=int, help="number of episodes; default: that of the paper")
    sub.add_argument(
        "--steps",
        type=int,
        help="maximum number of steps of an episode; default: that of the paper",
    )
    sub.add_argument(
        "--seed",
        type=_seed,
        default=0,
        help="random seed, default 0; the same seed gives the same file",
    )
    sub.add_argument(
        "--layout", choices=["flags", "final", "padded", "terminal_row"], default="flags",
        help="how an episode's end is logged. flags (default): a column terminated; final: "
        "also a row with the state after the last step; padded: episodes of one length that stay "
        "in the terminal state; terminal_row: one row in the terminal state",
    )  # fmt: skip
    sub.add_argument("--wide", action="store_true", help="one row per episode, as in the paper")
    sub.add_argument("--schema", help="a .toml file to write the schema to")
    sub.add_argument(
        "-o", "--output", required=True, help="a .csv, .tsv, .parquet or .jsonl file to write"
    )


def _add_reproducing(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--domains", nargs="+", metavar="DOMAIN", help="default: the paper's seven")
    sub.add_argument(
        "--scale", type=float, default=1.0, help="factor for the numbers of episodes, default 1"
    )
    sub.add_argument("--seeds", type=int, default=5, help="number of logs for each cell, default 5")
    sub.add_argument(
        "--baselines", nargs="*", default=["table", "clone"],
        help="table, clone, spmn (of whole sequences), bcq (needs d3rlpy); default: table clone",
    )  # fmt: skip
    sub.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes, default: all cores"
    )
    sub.add_argument(
        "-o", "--output", required=True,
        help="a folder to write; finished cells are kept there, and the same command resumes",
    )  # fmt: skip


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number of 0 or more, found {text!r}")
    return int(text)


def log_options(arguments: argparse.Namespace) -> LogOptions:
    """Return the fields of the log format that the arguments give; the schema has the others."""
    found: LogOptions = {}
    if arguments.episode is not None:
        found["episode"] = arguments.episode
    if arguments.time is not None or arguments.in_order:
        found["time"] = None if arguments.in_order else arguments.time
    if arguments.terminated is not None:
        found["terminated"] = arguments.terminated
    if arguments.ending is not None:
        found["ending"] = arguments.ending
    if arguments.gaps is not None:
        found["gaps"] = "allow" if arguments.gaps else "error"
    if arguments.drop_duplicates is not None:
        found["duplicates"] = "drop" if arguments.drop_duplicates else "error"
    if arguments.step is not None:
        is_number = re.fullmatch(r"[\d.]*\d", arguments.step)
        found["step"] = float(arguments.step) if is_number else arguments.step
    if arguments.wide is not None:
        found["wide"] = arguments.wide
    return found
