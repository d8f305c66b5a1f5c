"""Findings: something found in a log, and what to do about it; those of single columns."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rspmn.data.sources.column_stats import Survey, SurveyedColumn
from rspmn.data.sources.episode_stats import EpisodeStats
from rspmn.doctor.proposal import limits_or_missing
from rspmn.doctor.roles import end_rule, is_cost, written
from rspmn.schema import Kind, Schema

#: An error: nothing can be learned. A warning: what is learned may be wrong. A note: good to know.
Level = Literal["error", "warning", "note"]
#: Integers of more values than this may be meant as numbers.
MANY_INTEGERS = 50
#: So many names of columns are listed.
LISTED = 20


@dataclass(frozen=True)
class Finding:
    """Something found in a log."""

    level: Level
    about: str  # in a word: missing, coverage, markov, …
    found: str
    advice: str
    line: str = ""  # what to put into the schema.toml, if that helps
    table: str = ""  # the table of the schema.toml that it belongs to

    def __str__(self) -> str:
        said = f"{self.level}: {self.found}. {self.advice}."
        where = f"schema.toml, [{self.table}]" if self.table else "schema.toml"
        return f"{said}\n    {where}: {self.line}" if self.line else said


def order_without(schema: Schema, *names: str) -> str:
    """Return the order of a schema.toml without some variables.

    >>> order_without(Schema([["x", "y"], ["a"]], ["a"], "u"), "y")
    'order = [["x"], ["a"]]'
    """
    groups = [[name for name in group if name not in names] for group in schema.order]
    return f"order = {json.dumps([group for group in groups if group], ensure_ascii=False)}"


def column_findings(
    found: Survey, schema: Schema, others: Sequence[str], stats: EpisodeStats
) -> Iterator[Finding]:
    """Return what is found in the columns of a long table.

    `others` are the columns of the log's format, which are not variables.
    """
    unused = [n for n in found.names if n not in schema.variables and n not in others]
    if unused:
        more = f" and {len(unused) - LISTED} more" if len(unused) > LISTED else ""
        yield Finding(
            "note",
            "unused",
            f"columns that are not in the schema: {', '.join(unused[:LISTED])}{more}",
            "Add those that were observed before the decision to the schema",
        )
    for name in schema.state_variables:
        column = replace(found[name], kind=schema.kinds.get(name, found[name].kind))
        yield from _state_findings(column, found.rows, schema, stats)
    yield from _utility_findings(found[schema.utility], stats)
    if stats.gaps and schema.log.gaps == "error" and schema.log.step is None:
        yield Finding(
            "warning",
            "gaps",
            f"times have gaps in {stats.gaps} rows; the mean difference between rows is "
            f"{stats.usual_gap:.3g}",
            'If no step is missing, write gaps = "allow"; if times are measured, give the length '
            "of a step",
            f"step = {max(1, round(stats.usual_gap))}",
            "log",
        )
    if stats.equal and schema.log.duplicates == "error":
        yield Finding(
            "warning",
            "duplicates",
            f"{stats.equal} rows are equal to another row in all columns",
            "If they are the same event, count them once",
            'duplicates = "drop"',
            "log",
        )
    for name in schema.decisions:
        if found[name].is_constant:
            yield Finding(
                "warning",
                "decisions",
                f"decision {name!r} is constant, {found[name].examples[:1]}",
                "Nothing is known about other choices: log some, or remove the decision",
            )


def _missing(column: SurveyedColumn, rows: int, informative: bool) -> Finding:
    """Return what is found about a state variable that is missing in some rows."""
    name, share = column.name, column.missing / rows
    what = f"{name!r} is missing in {column.missing} of {rows} rows ({share:.1%})"
    if informative:
        return Finding("note", "missing", what, "Its absence is part of the state (informative)")
    return Finding(
        "warning" if share > 0.05 else "note",
        "missing",
        what,
        "Such steps are used with their known values. If the absence itself is informative, such "
        "as a laboratory test that was not ordered, declare it",
        f'{json.dumps(name, ensure_ascii=False)} = "informative"',
        "missing",
    )


def _state_findings(
    column: SurveyedColumn, rows: int, schema: Schema, stats: EpisodeStats
) -> Iterator[Finding]:
    """Return what is found about a state variable."""
    name, without = column.name, order_without(schema, column.name)
    if column.missing:
        yield _missing(column, rows, name in schema.informative)
    if column.odd and name not in dict(schema.log.numbers):
        yield _text_among_numbers(column, rows)
        return
    if name in stats.only_last:
        yield _end(column, stats.only_last[name])
    if column.is_constant:
        yield Finding(
            "note",
            "constant",
            f"{name!r} has the same value in every row, {column.examples[:1]}",
            "It carries no information: remove it from the schema",
            without,
        )
    elif column.is_dates:
        yield _dates(column, schema.log.time is None, without)
    elif column.is_unique(rows):
        yield Finding(
            "warning",
            "identifier",
            f"{name!r} has {column.distinct} values in {rows} rows: it looks like an identifier",
            "Every state would be unique: remove it from the schema",
            without,
        )
    elif column.is_scarce(rows):
        is_code = stats.are_codes.get(name, False)
        yield _scarce(column, column.is_fine(rows) and not is_code, rows, without)
    elif column.kind is Kind.INTEGER and column.distinct > MANY_INTEGERS:
        yield _many_integers(column)
    if stats.is_constant(name) and not column.is_constant:
        yield Finding(
            "note",
            "attribute",
            f"{name!r} does not change within episodes",
            "Learning uses it if something depends on it, and ignores it otherwise",
        )


def _end(column: SurveyedColumn, values: Sequence[object]) -> Finding:
    """Return what is found about a variable that has some values in last rows only."""
    is_flag = column.kind is not Kind.CATEGORICAL
    rule = column.name if is_flag else end_rule(column.name, values)
    return Finding(
        "warning",
        "ends",
        f"{column.name!r} is {', '.join(map(repr, values))} only in the last rows of episodes: it "
        "reveals the end, which is not known before the decision",
        "Remove it from the order, and declare it as the end",
        f"terminated = {json.dumps(rule, ensure_ascii=False)}",
        "log",
    )


def _dates(column: SurveyedColumn, is_time: bool, without: str) -> Finding:
    """Return what is found about a variable of dates; `is_time`: no other column is the time."""
    return Finding(
        "warning",
        "dates",
        f"{column.name!r} contains {column.distinct} dates: as a state variable, each is a "
        "separate category",
        "If rows are ordered by it, it is the time; otherwise remove it",
        f"time = {json.dumps(column.name, ensure_ascii=False)}" if is_time else without,
        "log" if is_time else "",
    )


def _scarce(column: SurveyedColumn, is_amount: bool, rows: int, without: str) -> Finding:
    """Return what is found about a variable of many values that are rarely seen."""
    what = (
        f"{column.name!r} has {column.distinct} values, each seen {rows / column.distinct:.1f} "
        "times on average"
    )
    if is_amount:
        line = f'{json.dumps(column.name, ensure_ascii=False)} = "continuous"'
        advice = "Declare it as continuous, so that states with similar values are treated alike"
        return Finding("warning", "cardinality", what, advice, line, "kinds")
    advice = "Group values that are equivalent for the decision, or remove it"
    return Finding("warning", "cardinality", what, advice, without)


def _many_integers(column: SurveyedColumn) -> Finding:
    return Finding(
        "note",
        "cardinality",
        f"{column.name!r} has {column.distinct} integer values, learned one by one",
        "If close values behave alike, declare it as continuous",
        f'{json.dumps(column.name, ensure_ascii=False)} = "continuous"',
        "kinds",
    )


def _text_among_numbers(column: SurveyedColumn, rows: int) -> Finding:
    shown = ", ".join(f"{word!r} ({number})" for word, number in column.odd)
    odd = rows - column.missing - column.numbers
    return Finding(
        "warning",
        "text",
        f"{column.name!r} contains numbers, and text in {odd} of {rows} rows: {shown}; the column "
        "is therefore read as text",
        "Read the column as numbers: 'limits' reads <0.5 as 0.5, 'missing' treats all text as "
        "missing",
        f"numbers = {{{json.dumps(column.name, ensure_ascii=False)} = "
        f'"{limits_or_missing(column)}"}}',
        "log",
    )


def _utility_findings(column: SurveyedColumn, stats: EpisodeStats) -> Iterator[Finding]:
    """Return what is found about the utility."""
    name = column.name
    if column.missing > stats.episodes and not column.is_computed:
        yield Finding(
            "warning",
            "utility",
            f"utility {name!r} is missing in {column.missing} rows",
            "If nothing was earned there, count it as 0",
            f"utility = {json.dumps(f'{written(name)} or 0')}",
        )
    elif column.is_constant:
        yield Finding(
            "note" if column.least else "warning",
            "utility",
            f"utility {name!r} is {column.least} in every row",
            "Policies differ in value only by the length of their episodes; check the column"
            if column.least
            else "All policies would have the same value: check that it is the right column",
        )
    elif is_cost(name) and column.least is not None and column.least >= 0:
        yield Finding(
            "warning",
            "utility",
            f"utility {name!r} looks like a cost, from {column.least:g} to {column.most:g}, but "
            "would be maximised",
            "If less is better, change its sign",
            f"utility = {json.dumps(f'-{written(name)}')}",
        )
