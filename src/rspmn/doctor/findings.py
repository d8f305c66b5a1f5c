"""Findings: something found in a log, and what to do about it; those of single columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rspmn.data.sources.column_stats import Survey
from rspmn.schema import Kind, Schema

#: An error: nothing can be learned. A warning: what is learned may be wrong. A note: good to know.
Level = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """Something found in a log."""

    level: Level
    about: str  # in a word: missing, coverage, markov, …
    found: str
    advice: str

    def __str__(self) -> str:
        return f"{self.level}: {self.found}. {self.advice}."


#: A variable with more values than MANY, each seen less than FEW times, is not learned well.
MANY, FEW = 100, 20


def column_findings(found: Survey, schema: Schema, others: Sequence[str]) -> Iterator[Finding]:
    """Return what is found in the columns of a long table.

    `others` are the columns of the log's format, which are not variables.
    """
    unused = [n for n in found.names if n not in schema.variables and n not in others]
    if unused:
        yield Finding(
            "note",
            "unused",
            f"columns that are not in the schema: {', '.join(unused)}",
            "Add what was known before the decision to the schema; leave the rest",
        )
    for name in schema.state_variables:
        column = found[name]
        if column.missing:
            share = column.missing / found.rows
            yield Finding(
                "warning" if share > 0.05 else "note",
                "missing",
                f"{name!r} is missing in {column.missing} of {found.rows} rows ({share:.1%})",
                "Steps that lack a variable that matters are left out; if it is missing for a "
                "reason, give that reason a value of its own, such as 'not measured'",
            )
        if column.is_constant:
            yield Finding(
                "note",
                "constant",
                f"{name!r} has the same value in every row, {column.examples[:1]}",
                "It carries no information: leave it out of the schema",
            )
        elif column.is_unique(found.rows):
            yield Finding(
                "warning",
                "identifier",
                f"{name!r} has {column.distinct} values in {found.rows} rows: it looks like an "
                "identifier",
                "Every state would be new: leave it out of the schema",
            )
        elif column.kind is not Kind.CONTINUOUS and (
            column.distinct > MANY and found.rows / column.distinct < FEW
        ):
            yield Finding(
                "warning",
                "cardinality",
                f"{name!r} has {column.distinct} values, each seen "
                f"{found.rows / column.distinct:.1f} times on average",
                "Group values that mean the same for the decision",
            )
    for name in schema.decisions:
        if found[name].is_constant:
            yield Finding(
                "warning",
                "decisions",
                f"decision {name!r} was always the same, {found[name].examples[:1]}",
                "Nothing is known about other choices: log some, or leave the decision out",
            )
    if found[schema.utility].is_constant:
        yield Finding(
            "warning",
            "utility",
            f"utility {schema.utility!r} is {found[schema.utility].least} in every row",
            "All policies have the same value then: check that it is the right column",
        )
