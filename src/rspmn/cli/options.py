"""Parameters that commands share. Nothing heavy is imported here: `rspmn --help` is quick."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rspmn.cli.framework import Argument, Arguments, Option
from rspmn.cli.streams import InputFile, OutputFile

#: As `rspmn.model.OFFERS`.
OFFERS = "tried", "expected", "all"

if TYPE_CHECKING:
    from rspmn.log_format import LogOptions

#: Sections of the help of a command.
LOG, POLICY, LEARNING, OUTPUT = "The log", "The policy", "Learning", "Output"


class Number(click.ParamType):  # type: ignore[type-arg] # generic since Click 8.3
    """A number in a range, whole or not.

    Parameters
    ----------
    least, most
        The range; its ends belong to it.
    whole
        Whether it must be a whole number.
    """

    name = "number"

    def __init__(self, least: float = -math.inf, most: float = math.inf, whole: bool = True):
        self.least, self.most, self.whole = least, most, whole

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | int:
        """Return the number, or raise a usage error."""
        if not isinstance(value, str):  # a default
            return value  # type: ignore[no-any-return]
        try:
            found = int(value) if self.whole else float(value)
        except ValueError:
            found = math.nan
        if math.isnan(found) or "_" in value:  # Python would read 1_0 as ten
            what = "an integer" if self.whole else "a number"
            self.fail(f"expected {what}, found {value!r}", param, ctx)
        if not self.least <= found <= self.most:
            up = "or more" if math.isinf(self.most) else f"to {self.most:g}"
            self.fail(f"expected {self.least:g} {up}, found {value}", param, ctx)
        return found


def file_to_read(name: str, about: str, **more: Any) -> Argument:
    """Return an argument that is a file; `-` is standard input."""
    return Argument(name, about, type=InputFile(), **more)


def model() -> Argument:
    """Return the argument that names a model."""
    return file_to_read("model", "a model file; - is standard input")


def output(ending: str, about: str, *, required: bool = False) -> Option:
    """Return the option that names the file to write."""
    return Option(
        "-o", "--output", type=OutputFile(ending), required=required, metavar="FILE",
        help=f"{about}; - is standard output", section=OUTPUT,
    )  # fmt: skip


def seed(about: str = "random seed, default 0", section: str = "Options") -> Option:
    """Return the option of a random seed."""
    return Option("--seed", type=Number(0), default=0, metavar="N", help=about, section=section)


def question() -> list[click.Parameter]:
    """Return the options of a question about a state."""
    return [state(), *plan()]


def state() -> Option:
    """Return the option that gives a state."""
    return Option(
        "--state", "--given", several=r"[^=]+=.*", metavar="NAME=VALUE",
        help="observed values, as in --state x=0 y=1, including decisions already made; NAME= "
        "for an unknown value; yes, no, true or false for booleans",
        shell_complete=_variables, section=POLICY,
    )  # fmt: skip


def _variables(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the variables of the model that a line names, to be completed by the shell."""
    words = [ctx.params.get("model"), *ctx.args]  # the line may not be parsed yet
    path = next((word for word in words if word and Path(word).is_file()), None)
    try:
        groups = json.loads(Path(path or "").read_text())["schema"]["order"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [f"{name}=" for group in groups for name in group if name.startswith(incomplete)]


def plan() -> list[click.Parameter]:
    """Return the options of a policy: its horizon, and what it may do."""
    return [horizon(), *optimum()]


def horizon() -> Option:
    """Return the option of a horizon."""
    return Option("--horizon", type=Number(1), metavar="STEPS", section=POLICY,
                  help="number of steps; default: until the values converge")  # fmt: skip


def discount() -> Option:
    """Return the option of a discount."""
    return Option(
        "--discount", type=Number(0, 1, whole=False), default=1.0, metavar="FACTOR",
        help="discount factor per step, default 1", section=POLICY,
    )  # fmt: skip


def time_step() -> Option:
    """Return the option that says when in the horizon the question is asked."""
    return Option("-t", type=Number(0), default=0, metavar="STEP", help="time step, default 0",
                  section=POLICY)  # fmt: skip


def optimum() -> list[click.Parameter]:
    """Return what the best decisions depend on besides the horizon."""
    return [
        discount(),
        Option(
            "--offer", type=click.Choice(OFFERS), default="expected", section=POLICY,
            help="which decisions to consider in a state: those tried there; also those that "
            "chance left out, as expected; or all, also those that the logger avoided",
        ),
        Option(
            "--forbid", multiple=True, metavar="RULE", section=POLICY,
            help="an action to exclude, or 'ACTION when CONDITION', as in 'vasopressor when "
            "map > 80'; with several decisions, DECISION=ACTION; can be repeated",
        ),
        Option(
            "--only", multiple=True, metavar="RULE", section=POLICY,
            help="an action to allow exclusively, always or when a condition holds; can be "
            "repeated",
        ),
        Option(
            "--min-support", type=Number(0, whole=False), default=0.0, metavar="STEPS",
            help="exclude actions with fewer logged steps", section=POLICY,
        ),
        Option(
            "--plain", is_flag=True, section=POLICY,
            help="the plan of maximum expected utility, even where the log does not support that "
            "it is better than practice",
        ),
    ]  # fmt: skip


FILES = "CSV, TSV, Parquet or JSON lines files, one row per step, or a glob pattern"


def log_files() -> Argument:
    """Return the argument that names the files of a log."""
    return file_to_read("log", f"{FILES}; - is standard input", nargs=-1, required=True)


def log_files_option(about: str = FILES, *, required: bool = True) -> Option:
    """Return the option that names the files of a log."""
    return Option("--log", several=".+", type=InputFile(), required=required, metavar="FILE",
                  help=about, section=LOG)  # fmt: skip


def log_format() -> list[click.Parameter]:
    """Return the options for the format of a log."""
    return [
        Option(
            "--episode", metavar="COLUMN", section=LOG,
            help="column that identifies the episode; default: that of [log] in the schema.toml, "
            "or episode",
        ),
        Option("--time", metavar="COLUMN", section=LOG,
               help="column that orders the steps; same default, or time"),
        Option("--in-order", is_flag=True, section=LOG,
               help="there is no time column: the rows are in order"),
        Option(
            "--terminated", metavar="COLUMN", section=LOG,
            help="column that is true in the last row of an episode that terminated; same "
            "default, or terminated if there is such a column",
        ),
        Option(
            "--ending", type=click.Choice(["end", "cut", "short", "final_row"]), section=LOG,
            help="how episodes ended, if no column says so. end: all terminated; cut: all were "
            "truncated; short: those shorter than the longest one terminated; final_row: those "
            "whose last row has no decision terminated",
        ),
        Option("--gaps/--no-gaps", default=None, section=LOG,
               help="accept gaps between integer times"),
        Option("--drop-duplicates/--no-drop-duplicates", default=None, section=LOG,
               help="count duplicate rows once"),
        Option(
            "--step", metavar="LENGTH", section=LOG,
            help="length of a step, for measured times: a number in their unit or, for dates, "
            "such as '4 hours'; rows within one step are joined",
        ),
        Option("--wide/--no-wide", default=None, section=LOG,
               help="each row is an episode, with a block of columns for each step"),
    ]  # fmt: skip


def memory_limit() -> Option:
    """Return the option that bounds the memory for reading files."""
    return Option(
        "--memory-limit", metavar="SIZE", section=LOG,
        help="memory limit for reading files, such as 500MB; default 1GB; uses the disk beyond it",
    )  # fmt: skip


def log_options(arguments: Arguments) -> "LogOptions":
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
        found["step"] = _number_or_text(arguments.step)
    if arguments.wide is not None:
        found["wide"] = arguments.wide
    return found


def _number_or_text(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
