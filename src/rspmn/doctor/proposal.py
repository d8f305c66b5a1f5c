"""A schema proposed for a log, to be edited."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import tomli_w

from rspmn.data.sources.column_stats import Survey, SurveyedColumn
from rspmn.errors import DataError
from rspmn.log_format import LogFormat
from rspmn.schema import Kind, Schema

#: Names by which the role of a column is recognized; the first that the table has is used.
EPISODES = [
    "episode", "episode_id", "trajectory", "traj", "trajectory_id", "patient", "patient_id",
    "subject", "session", "session_id", "user_id", "machine_id", "run", "case", "id",
]  # fmt: skip
TIMES = [
    "time", "t", "step", "timestep", "time_step", "date", "datetime", "timestamp", "day",
    "visit", "seq", "order",
]  # fmt: skip
TERMINATED = ["terminated", "terminal", "done", "is_terminal", "end", "ended"]
DECISIONS = [
    "action", "decision", "act", "treatment", "treat", "choice", "dose", "control", "move",
    "intervention", "a", "d",
]  # fmt: skip
UTILITIES = [
    "reward", "utility", "payoff", "return", "outcome", "score", "profit", "cost", "r", "u",
]  # fmt: skip
#: Columns about the log, not about the state.
ASIDE = ["truncated", "timeout", "timeouts", "info", "index", "row"]


@dataclass(frozen=True)
class Proposal:
    """A proposed schema, and the columns of the log that are not variables."""

    episode: str | None
    time: str | None
    terminated: str | None
    decisions: tuple[str, ...]
    utility: str | None
    state: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]  # columns, and why
    kinds: tuple[tuple[str, Kind], ...]

    @property
    def schema(self) -> Schema:
        """The schema; refused if no column looks like a decision or a utility."""
        if not self.decisions or self.utility is None:
            lacking = "decisions" if not self.decisions else "a utility"
            raise DataError(
                f"no column looks like {lacking}: write a schema.toml, which "
                "`rspmn schema LOG -o schema.toml` begins"
            )
        kinds = {name: kind for name, kind in self.kinds if name != self.utility}
        order = [list(self.state), *([name] for name in self.decisions)]
        return Schema(order, self.decisions, self.utility, kinds, self.log)

    @property
    def log(self) -> LogFormat:
        """The format of the log, as far as columns were found."""
        return LogFormat(**self._log_columns())

    def _log_columns(self) -> dict[str, Any]:
        found = {"episode": self.episode, "time": self.time, "terminated": self.terminated}
        return {what: name for what, name in found.items() if name}

    def toml(self) -> str:
        """Return a schema.toml with comments on what to look at."""
        order = [list(self.state), *([name] for name in self.decisions)]
        decided = list(self.decisions)
        kinds = {name: str(kind) for name, kind in self.kinds if name != self.utility}
        found = self._log_columns()
        lines = [
            "# A schema proposed from the columns' names and values: check it before you use it.",
            "# order: what is known first comes first; a decision is a group of its own.",
            tomli_w.dumps({"order": order}, multiline_strings=False).strip(),
            "# The decisions: the variables that can be chosen."
            + ("" if decided else " NAME THEM HERE: no column looks like it."),
            tomli_w.dumps({"decisions": decided}).strip(),
            "# The reward of a step; more is better (change the sign of a cost)."
            + ("" if self.utility else " NAME IT HERE: no column looks like it."),
            tomli_w.dumps({"utility": self.utility or ""}).strip(),
            *(f"# left out: {name}: {why}" for name, why in self.left_out),
            *(
                f"# {what}: no column looks like it; name it under [log], or by --{what}"
                for what in ("episode", "time", "terminated")
                if what not in found
            ),
            *(
                f"# Does {name!r} say that the episode ended? Then take it out of order and kinds, "
                f"and name it under [log], terminated = {name!r}: no decision can know it."
                for name, kind in self.kinds
                if kind is Kind.BOOLEAN and name in self.state and self.terminated is None
            ),
            "",
            "# The format of the log: its columns that are not variables.",
            tomli_w.dumps({"log": found}).strip(),
            "",
            tomli_w.dumps({"kinds": kinds}).strip(),
            "",
        ]
        return "\n".join(lines)


def propose(found: Survey, log: LogFormat | None = None) -> Proposal:
    """Propose a schema for a long table by its columns' names and values.

    Columns that a format of the log names are not variables.
    """
    names = {column.name.lower(): column for column in found.columns}
    log = log or LogFormat()
    named = (log.episode, log.time, log.terminated)
    episode, time, terminated = (
        next((c for c in found.columns if c.name == name), None) or _named(names, usual)
        for name, usual in zip(named, (EPISODES, TIMES, TERMINATED), strict=True)
    )
    taken = {column.name for column in (episode, time, terminated) if column is not None}
    utility = _named(names, UTILITIES, taken)
    if utility is not None and utility.kind in (Kind.CATEGORICAL, None):
        utility = None
    taken |= {utility.name} if utility else set()
    decisions = _decisions([c for c in found.columns if c.name not in taken])
    taken |= set(decisions)
    state, left_out = [], []
    for column in found.columns:
        if column.name in taken:
            continue
        why = _why_not(column, found.rows)
        if why:
            left_out.append((column.name, why))
        else:
            state.append(column)
    return Proposal(
        episode.name if episode else None,
        time.name if time else None,
        terminated.name if terminated else None,
        tuple(decisions),
        utility.name if utility else None,
        tuple(column.name for column in state),
        tuple(left_out),
        tuple(
            (c.name, c.kind)
            for c in (*state, *(found[name] for name in decisions))
            if c.kind is not None
        ),
    )


def _named(
    names: dict[str, SurveyedColumn], wanted: Iterable[str], taken: Iterable[str] = ()
) -> SurveyedColumn | None:
    """Return the first column that has one of the names."""
    used = set(taken)
    return next((names[n] for n in wanted if n in names and names[n].name not in used), None)


def _decisions(columns: Sequence[SurveyedColumn]) -> list[str]:
    """Return the columns that are named as decisions are, numbered ones too."""
    for word in DECISIONS:
        found = [
            column.name
            for column in columns
            if column.kind is not Kind.CONTINUOUS
            and (
                column.name.lower() == word
                or (len(word) > 1 and column.name.lower().startswith((f"{word}_", f"{word}s_")))
            )
        ]
        if found:
            return found
    return []


def _why_not(column: SurveyedColumn, rows: int) -> str:
    """Return why a column is not a state variable; empty if it is one."""
    if column.kind is None:
        return f"holds {column.stored}"
    if column.name.lower() in ASIDE:
        return "is about the log, not about the state"
    if column.is_constant:
        return "has the same value in every row"
    if column.is_unique(rows):
        return "has a value of its own in nearly every row: an identifier"
    return ""
