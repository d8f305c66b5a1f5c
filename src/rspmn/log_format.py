"""The format of a log: which columns are not variables, and how the last rows are read.

A schema keeps one (`Schema.log`), a schema.toml writes it as the table `[log]`, and a model
remembers it, so that every reader of logs goes by the same one.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypedDict, Unpack, get_args

from rspmn.errors import DataError, SchemaError, did_you_mean, no_column
from rspmn.expressions import expression_of
from rspmn.values import is_name, is_string

#: What the last row of an episode means where no column says why the episode ended.
Ending = Literal["end", "cut", "short", "final_row"]
#: Whether whole-number times may leave some out.
Gaps = Literal["error", "allow"]
#: What is done with rows that are equal in all that is used of them.
Duplicates = Literal["error", "drop"]

#: How text in a column of numbers is read: as missing, or limits such as "<0.5" as the number.
Numbers = Literal["missing", "limits"]

#: The seconds of the units in which the length of a step may be given.
SECONDS = {
    "second": 1, "sec": 1, "s": 1, "minute": 60, "min": 60, "hour": 3600, "h": 3600,
    "day": 86400, "d": 86400, "week": 604800,
}  # fmt: skip
DURATION = re.compile(rf"(\d+(?:\.\d+)?)?\s*({'|'.join(SECONDS)})s?")

#: The name that Gymnasium gives to the column, and that `Episodes.to_long` writes.
TERMINATED = "terminated"


#: What is said of a log that leaves open why episodes ended.
SILENT = (
    "the table does not say why episodes ended: name a column with the option terminated, or give "
    "the option ending, which is 'end' (all terminated), 'cut' (all truncated), 'short' (all but "
    "the longest terminated) or 'final_row' (terminated if the last row has no decision)"
)


class LogOptions(TypedDict, total=False):
    """The fields of a `LogFormat` as keyword arguments; those given override the schema's."""

    episode: str
    time: str | None
    terminated: str | None
    ending: Ending | None
    gaps: Gaps
    duplicates: Duplicates
    step: str | float | None
    numbers: Mapping[str, Numbers] | None
    wide: bool
    columns: Sequence[str] | None


@dataclass(frozen=True)
class LogFormat:
    """The format of the table of a log.

    Parameters
    ----------
    episode, time
        The columns with the episode and the time of a row. `time=None` means that the rows of each
        episode are in order.
    terminated
        A column that is true in the last row of an episode that terminated, or an expression of
        columns that is, "status in (cured, died)". It is used unless `ending` is given. The
        default is the column "terminated" if the table has one.
    ending
        How episodes ended, if no column says so. "end": all terminated. "cut": all were truncated.
        "short": episodes shorter than the longest one terminated, the others were truncated.
        "final_row": episodes whose last row has neither decision nor utility terminated, the others
        were truncated.
    gaps
        "error" raises an error for gaps between integer times, "allow" accepts them.
    duplicates
        "error" raises an error for two rows with the same episode and time. "drop" counts rows that
        are equal in all used columns once; other rows with the same time are still an error.
    step
        The length of a step, for measured times: a number in the unit of the times or, for dates, a
        text such as "4 hours" or "1 day". Rows of an episode within one step are joined: the first
        value of each state variable and decision is used, and utilities are added up.
    numbers
        Numeric columns in which some cells are text, `{"lactate": "limits"}`. "missing": text is
        missing. "limits": "<0.5" counts as 0.5, and other text is missing.
    wide
        Whether a row is an episode, with a block of columns for each step. Then `episode`,
        `time`, `terminated`, `gaps`, `duplicates`, `step` and `numbers` are not used.
    columns
        The variables of a block of a wide table in the order of its columns; the schema's order
        if empty.

    Notes
    -----
    A last row without decisions and utility is not a step. It is the state that followed the last
    step.

    Examples
    --------
    >>> LogFormat(terminated="done").override(ending="cut")
    LogFormat(ending='cut')
    """

    episode: str = "episode"
    time: str | None = "time"
    terminated: str | None = TERMINATED
    ending: Ending | None = None
    gaps: Gaps = "error"
    duplicates: Duplicates = "error"
    step: str | float | None = None
    numbers: tuple[tuple[str, Numbers], ...] = ()
    wide: bool = False
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("episode", "time", "terminated"):
            found = getattr(self, name)
            if not is_name(found):
                if found is None and name != "episode":
                    continue
                raise DataError(f"{name}: expected the name of a column, found {found!r}")
        choices = {"ending": Ending, "gaps": Gaps, "duplicates": Duplicates}
        for name, choice in choices.items():
            found, valid = getattr(self, name), get_args(choice)
            if found not in valid and not (found is None and name == "ending"):
                raise DataError(f"{name} {found!r}: {did_you_mean(found, valid)}")
        if self.step is not None:
            self.step_length  # noqa: B018  (refused now if it is none)
            if self.time is None:
                raise DataError("step: rows in order have no time: name the time column")
        object.__setattr__(self, "numbers", _pairs(self.numbers))
        if not isinstance(self.wide, bool):
            raise DataError(f"wide: expected True or False, found {self.wide!r}")
        columns: Any = () if self.columns is None else self.columns
        if isinstance(columns, str) or not all(map(is_string, columns)):
            raise DataError(f"columns: expected a list of names, found {columns!r}")
        object.__setattr__(self, "columns", tuple(columns))
        if self.ending is not None and self.terminated not in (None, TERMINATED):
            raise _both_say()

    def __repr__(self) -> str:
        changed = ", ".join(f"{name}={value!r}" for name, value in self._changed().items())
        return f"LogFormat({changed})"

    def _changed(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults."""
        pairs = ((each, getattr(self, each.name)) for each in fields(self))
        return {each.name: value for each, value in pairs if value != each.default}

    @property
    def flag(self) -> str | None:
        """The column that says whether an episode terminated; None if none is used."""
        return None if self.wide or self.ending is not None else self.terminated

    @property
    def step_length(self) -> tuple[float, bool]:
        """The length of a step, and whether it is a duration in seconds, for dates."""
        found = re.fullmatch(DURATION, self.step) if isinstance(self.step, str) else None
        if found is not None:
            length = float(found[1] or 1) * SECONDS[found[2]]
        elif isinstance(self.step, str | bool) or not isinstance(self.step, int | float):
            length = math.nan
        else:
            length = float(self.step)
        if not 0 < length < math.inf:
            raise DataError(
                f"step: expected a number above 0, or a duration such as '4 hours' or '1 day', "
                f"found {self.step!r}"
            )
        return length, found is not None

    def override(self, **options: Unpack[LogOptions]) -> "LogFormat":
        """Return the format with some fields changed.

        `ending` and `terminated` exclude each other: the one that is given replaces the other.
        """
        valid = [each.name for each in fields(self)]
        for name in options:
            if name not in valid:
                raise TypeError(f"unexpected keyword {name!r}: {did_you_mean(name, valid)}")
        given: dict[str, Any] = dict(options)
        if given.get("ending") is not None:
            if given.setdefault("terminated", TERMINATED) is not None and "terminated" in options:
                raise _both_say()
        elif given.get("terminated") is not None:
            given["ending"] = None
        return replace(self, **given)

    def check_names(self, names: Sequence[str], variables: Sequence[str]) -> None:
        """Raise an error if a column is missing, or if it is unknown how episodes ended."""
        if not self.wide:
            self._check_present("episode", self.episode, names)
            self._check_present("time", self.time, names)
        flag = self.flag
        if flag is not None and flag in variables:
            raise DataError(
                f"column {flag!r} is both the terminated flag and a variable of the schema: before "
                "the decision, it would reveal what comes after it; remove it from the schema, or "
                "give the option ending"
            )
        if not self.says_why_episodes_ended(names):
            raise DataError(SILENT)
        if flag is not None:
            self._check_present("terminated", flag, names)

    def says_why_episodes_ended(self, names: Sequence[str]) -> bool:
        """Return whether the format says why episodes ended, given the columns of the table."""
        if self.ending is not None:
            return True
        return self.flag is not None and (self.flag != TERMINATED or self.flag in names)

    def _check_present(self, what: str, name: str | None, names: Sequence[str]) -> None:
        if name is None or name in names:
            return
        if what == "terminated":
            if not expression_of(name, names, "terminated column").is_condition:
                raise DataError(
                    f"terminated {name!r}: expected a column, or a condition such as "
                    "'status in (cured, died)'"
                )
            return
        if name != getattr(LogFormat, what):
            raise no_column(f"{what} column", name, names)
        in_order = (
            ", or, if the rows of each episode are in order, say so (time=None in Python, "
            "in_order = true in a schema.toml, --in-order on the command line)"
        )
        raise DataError(
            f"no {what} column {name!r} in the table, which has {', '.join(map(repr, names))}: "
            f"name it with the option {what}{in_order if what == 'time' else ''}"
        )

    # ---- files -------------------------------------------------------------------

    @classmethod
    def from_dict(cls, raw: object, where: str = "schema") -> "LogFormat":
        """Read the plain form: the fields that differ from their defaults.

        `in_order = true` is `time=None`: the rows of each episode are in order.
        """
        if not isinstance(raw, Mapping):
            raise SchemaError(f"{where}: 'log' must be a table, found {raw!r}")
        valid = [*(each.name for each in fields(cls)), "in_order"]
        for key, value in raw.items():
            if key not in valid:
                raise SchemaError(f"{where}: unknown key {key!r}: {did_you_mean(key, valid)}")
            if key == "in_order" and not isinstance(value, bool):
                raise SchemaError(
                    f"{where}: 'log': in_order: expected true or false, found {value!r}"
                )
        given = dict(raw)
        if given.pop("in_order", False):
            if "time" in given:
                raise SchemaError(f"{where}: 'log': in_order and time exclude each other")
            given["time"] = None
        try:
            return cls(**given)
        except DataError as error:
            raise SchemaError(f"{where}: 'log': {error}") from None

    def to_dict(self) -> dict[str, object]:
        """Return the plain form that `from_dict` reads; empty for the default format."""
        plain = self._changed()
        if self.numbers:
            plain["numbers"] = dict(self.numbers)
        if self.columns:
            plain["columns"] = list(self.columns)
        if plain.get("time", "") is None:
            del plain["time"]
            plain["in_order"] = True
        if plain.get("terminated", "") is None:
            del plain["terminated"]  # without it `ending` counts, as it does with None
        return plain


def _pairs(numbers: object) -> tuple[tuple[str, Numbers], ...]:
    """Return how columns of numbers are read, as pairs."""
    given: Any = dict(numbers) if isinstance(numbers, tuple) else numbers or {}
    if not isinstance(given, Mapping):
        raise DataError(f"numbers: expected columns and how to read them, found {numbers!r}")
    for name, how in given.items():
        if not is_name(name):
            raise DataError(f"numbers: expected the name of a column, found {name!r}")
        if how not in get_args(Numbers):
            raise DataError(f"numbers: {name!r}: {how!r}: {did_you_mean(how, get_args(Numbers))}")
    return tuple(given.items())


def _both_say() -> DataError:
    return DataError("both terminated and ending say why episodes ended: pass one of them")
