"""A schema proposed for a log, to be edited."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import tomli_w

from rspmn.data.sources.column_stats import Survey, SurveyedColumn, survey
from rspmn.data.sources.engine import Engine
from rspmn.data.sources.episode_stats import EpisodeStats, episode_by_times, episode_stats
from rspmn.doctor.roles import (
    is_called_decision,
    is_called_outcome,
    is_cost,
    keys_of,
    roles_of,
    spelled,
    written,
)
from rspmn.errors import DataError
from rspmn.log_format import LogFormat
from rspmn.schema import Kind, Schema

#: What to do where no column looks like what the format of a log needs.
LACKING = {
    "episode": "name it under [log], or with --episode",
    "time": "name it under [log], or with --time; otherwise, rows are assumed to be in order",
    "terminated": 'name it under [log], or with --terminated; or write ending = "cut" there if '
    'all episodes were truncated, ending = "end" if all terminated',
}
#: Columns about the log, not about the state.
ASIDE = ["truncated", "timeout", "timeouts", "info", "index", "row"]


@dataclass(frozen=True)
class Proposal:
    """A proposed schema, and the columns of the log that are not variables."""

    log: LogFormat
    found: frozenset[str]  # the fields of the format that were found, not left at their defaults
    decisions: tuple[str, ...]
    utility: str | None
    state: tuple[str, ...]
    attributes: tuple[str, ...]  # of the state, what does not change in an episode
    left_out: tuple[tuple[str, str], ...]  # columns, and why
    kinds: tuple[tuple[str, Kind], ...]
    alike: tuple[tuple[str, str], ...] = ()  # of the state, what may be a decision, and why
    codes: tuple[str, ...] = ()  # what is said of whole numbers that may be codes
    outcomes: tuple[str, ...] = ()  # examples of values for words that say how episodes end

    @property
    def schema(self) -> Schema:
        """The schema; refused if no column looks like a decision or a utility."""
        if not self.decisions or self.utility is None:
            lacking = "decisions" if not self.decisions else "a utility"
            raise DataError(
                f"no column looks like {lacking}: give a schema, or write a schema.toml, starting "
                "with `rspmn schema LOG -o schema.toml`"
            )
        order = [list(self.state), *([name] for name in self.decisions)]
        return Schema(order, self.decisions, self.utility, dict(self.kinds), self.log)

    def toml(self) -> str:
        """Return a schema.toml with comments on what to look at."""
        order = [list(self.state), *([name] for name in self.decisions)]
        decided = list(self.decisions)
        kinds = {name: str(kind) for name, kind in self.kinds}
        lines = [
            "# A schema proposed from the columns' names and values: check it before use.",
            "# order: groups of variables as they are observed; each decision is its own group.",
            "# What is before a decision must be known when it is made, and must not be chosen.",
            tomli_w.dumps({"order": order}, multiline_strings=False).strip(),
            "# The decisions: the variables that can be chosen."
            + ("" if decided else " NAME THEM HERE: no column looks like it."),
            tomli_w.dumps({"decisions": decided}).strip(),
            '# The reward of a step, to be maximised; write a cost with a minus, "-cost".'
            + ("" if self.utility else " NAME IT HERE: no column looks like it."),
            tomli_w.dumps({"utility": self.utility or ""}).strip(),
            *(
                f"# {name} is constant within episodes: it is used if something depends on it"
                for name in self.attributes
            ),
            *(
                f"# {name} {what}: if it was chosen, make it a decision"
                for name, what in self.alike
            ),
            *self._doubts(),
            *(f"# {said}" for said in self.codes),
            *(f"# left out: {name}: {why}" for name, why in self.left_out),
            *(
                f"# To reward how episodes end: utility = [{json.dumps(self.utility)}, {worths}]"
                for worths in self.outcomes
                if self.utility
            ),
            *(
                f"# {what}: no column looks like it; {advice}"
                for what, advice in LACKING.items()
                if what not in self.found
            ),
            *(
                ["# Times have gaps: keep gaps if no step is missing, else give the step's length"]
                if self.log.gaps == "allow"
                else []
            ),
            "",
            "# The format of the log: its columns that are not variables, and how it is read.",
            tomli_w.dumps({"log": self._log()}).strip(),
            "",
            tomli_w.dumps({"kinds": kinds}).strip(),
            "",
        ]
        return "\n".join(lines)

    def _doubts(self) -> Iterator[str]:
        """Return a comment for each state variable that is called as something else."""
        for name in self.state:
            if is_called_decision(name):
                yield f"# {name} is named as decisions are: if it was chosen, make it a decision"
            elif is_called_outcome(name):
                yield (
                    f"# {name} is named as what follows a decision: if it is not known before, "
                    "remove it from order"
                )

    def _log(self) -> dict[str, Any]:
        """Return the format of the log, with what was found although it is the default."""
        said = {what: getattr(self.log, what) for what in ("episode", "time", "terminated")}
        return {k: v for k, v in said.items() if k in self.found} | self.log.to_dict()


def survey_log(source: Engine, log: LogFormat | None = None) -> tuple[Survey, EpisodeStats | None]:
    """Return what is in the columns of a long table, and in its episodes, if these are known."""
    log = log or LogFormat()
    found = survey(source)
    episode, time = keys_of(found, log)
    if episode is None and time is not None:
        episode = episode_by_times(source, found, time)
    if episode is None:
        return found, None
    names = [column.name for column in found.columns]
    return found, episode_stats(source, found, episode, time, names)


def propose(
    found: Survey, stats: EpisodeStats | None = None, log: LogFormat | None = None
) -> Proposal:
    """Propose a schema for a long table by its columns' names and values.

    Columns that a format of the log names are not variables.
    """
    log = log or LogFormat()
    roles = roles_of(found, stats, log)
    state = [c for c in found.columns if c.name not in roles.taken and not _why_not(c, found.rows)]
    others = [c for c in found.columns if c.name not in roles.taken and c not in state]
    numbers: Any = {column.name: limits_or_missing(column) for column in state if column.odd}
    is_repeated = stats is not None and 0 < stats.equal == stats.same_time
    changes: Any = {"duplicates": "drop"} if is_repeated and log.duplicates == "error" else {}
    changes |= {"numbers": dict(log.numbers) | numbers} if numbers else {}
    if "time" not in roles.known:
        changes["time"] = None
    elif stats is not None and stats.gaps and log.step is None:
        changes["gaps"] = "allow"
    return Proposal(
        log.override(**roles.known, **changes),
        frozenset(roles.known),
        roles.decisions,
        _worth([found[name] for name in roles.utility], stats),
        tuple(column.name for column in state),
        tuple(c.name for c in state if stats is not None and stats.is_constant(c.name)),
        (
            *((name, "says how the episode ended") for name in roles.outcomes),
            *((column.name, _why_not(column, found.rows)) for column in others),
        ),
        tuple(
            (c.name, Kind.CONTINUOUS if c.name in numbers else _kind(c, c.kind, found.rows, stats))
            for c in (*state, *(found[name] for name in roles.decisions))
            if c.kind is not None
        ),
        tuple(_alike(found, stats, state, roles.decisions)),
        tuple(_said_of_codes(c, stats) for c in state if c.is_fine(found.rows)),
        tuple(
            _worths(name, words)
            for name, words in roles.outcomes.items()
            if found[name].kind is Kind.CATEGORICAL
        ),
    )


def _kind(column: SurveyedColumn, stored: Kind, rows: int, stats: EpisodeStats | None) -> Kind:
    """Return the kind of a column: whole numbers of many values are amounts, or codes."""
    if not column.is_fine(rows):
        return stored
    is_code = stats is not None and stats.are_codes.get(column.name)
    return Kind.CATEGORICAL if is_code else Kind.CONTINUOUS


def _said_of_codes(column: SurveyedColumn, stats: EpisodeStats | None) -> str:
    """Return why whole numbers are taken for numbers or for codes, and how to change that."""
    name = json.dumps(column.name, ensure_ascii=False)
    what = f"{column.name} has {column.distinct} whole numbers, {column.least} to {column.most}"
    is_code = None if stats is None else stats.are_codes.get(column.name)
    if is_code:
        return (
            f"{what}: codes, as neighbours are followed by different values; if it is an amount, "
            f'write {name} = "continuous" under [kinds]'
        )
    why = "as neighbours are followed by similar values" if is_code is False else "but CHECK THIS"
    return f'{what}: an amount, {why}; if it is a code, write {name} = "categorical" under [kinds]'


def _alike(
    found: Survey,
    stats: EpisodeStats | None,
    state: Sequence[SurveyedColumn],
    decisions: Sequence[str],
) -> Iterator[tuple[str, str]]:
    """Return state variables beside a decision in the table, with the same values or with two."""
    changing = {} if stats is None else stats.changing
    doubted = [c for c in state if is_called_decision(c.name) or is_called_outcome(c.name)]
    for one, other in pairwise(found.columns):
        for column, decision in ((one, other), (other, one)):
            if decision.name in decisions and column in state and column not in doubted:
                shape = [(c.kind, c.distinct, c.least, c.most) for c in (column, decision)]
                if shape[0] == shape[1] and column.kind is not Kind.CATEGORICAL:
                    yield column.name, f"has the same values as {decision.name}"
                elif column.distinct == 2 and changing.get(column.name):
                    yield column.name, f"has two values, and is beside {decision.name}"


def _worth(columns: Sequence[SurveyedColumn], stats: EpisodeStats | None) -> str | None:
    """Return the sum of columns: costs with a minus, 0 where most steps have none; None of none."""
    terms = []
    for column in columns:
        name, sign = written(column.name), "-" if is_cost(column.name) else ""
        if stats is not None and column.missing > stats.episodes:
            filled = f"{name} or 0"
            terms.append(f"{sign}({filled})" if sign or len(columns) > 1 else filled)
        else:
            terms.append(f"{sign}{name}" if sign or len(columns) > 1 else column.name)
    return " + ".join(terms).replace(" + -", " - ") or None


def _worths(name: str, words: Sequence[str]) -> str:
    """Return a table of TOML with a value for each word."""
    values = ", ".join(f"{json.dumps(word, ensure_ascii=False)} = 0" for word in words)
    return f"{{{json.dumps(name, ensure_ascii=False)} = {{{values}}}}}"


def limits_or_missing(column: SurveyedColumn) -> str:
    """Return how the text in a column of numbers is to be read."""
    return "limits" if any(word.strip()[:1] in "<>≤≥" for word, _ in column.odd) else "missing"


def _why_not(column: SurveyedColumn, rows: int) -> str:
    """Return why a column is not a state variable; empty if it is one."""
    if column.kind is None:
        return f"contains {column.stored}"
    if spelled(column.name) in ASIDE:
        return "describes the log, not the state"
    if column.is_constant and column.missing:
        return f"is {column.examples[0]!r} or missing" if column.examples else "is always missing"
    if column.is_constant:
        return "has the same value in every row"
    if column.is_dates:
        return "contains dates: as a state, each would be a separate category"
    if column.odd:
        return ""  # numbers, some of them text
    if column.is_unique(rows):
        return "is different in nearly every row: an identifier"
    return ""
