"""What may be wrong with a table of single decisions, before anything is learned from it."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

import numpy as np

from rspmn.data.columns import Column
from rspmn.data.keys import column_keys, join
from rspmn.data.tables import as_table, code_cells
from rspmn.doctor.findings import Finding, order_without
from rspmn.schema import Kind, Schema
from rspmn.values import Value

#: A value of a decision in fewer rows is not known well.
FEW = 10
#: A variable that is so correlated with the utility is likely to be a part of it.
GIVEN_AWAY = 0.999


@dataclass(frozen=True)
class DecisionsDiagnosis:
    """What a table of single decisions holds."""

    rows: int
    contexts: int  # distinct, of what is known before the first decision
    balance: Mapping[str, Mapping[Value, int]]  # of each decision, how often each value was made
    findings: tuple[Finding, ...]

    @property
    def is_sound(self) -> bool:
        """Whether something can be learned from it."""
        return not any(finding.level == "error" for finding in self.findings)

    def to_dict(self) -> dict[str, object]:
        """Return everything as JSON has it."""
        balance = {n: {str(v): c for v, c in counts.items()} for n, counts in self.balance.items()}
        findings = [asdict(finding) for finding in self.findings]
        return {"rows": self.rows, "contexts": self.contexts, "balance": balance,
                "findings": findings}  # fmt: skip


def examine_decisions(source: object, schema: Schema) -> DecisionsDiagnosis:
    """Return what a table of single decisions holds, and what may be wrong with it.

    >>> table = {"x": [1, 2, 3, 4], "a": ["go"] * 4, "u": [0, 1, 0, 1]}
    >>> found = examine_decisions(table, Schema([["x"], ["a"]], ["a"], "u"))
    >>> found.findings[0].found
    "decision 'a' was always the same, go"
    """
    table = as_table(source)
    columns = {name: code_cells(table.cells(name), name, schema) for name in schema.variables}
    first = [columns[name] for name in schema.information_sets[0]]
    contexts = len(np.unique(join([column_keys(c) for c in first]).codes)) if first else 1
    balance = {name: _counts(columns[name]) for name in schema.decisions}
    findings = (
        *_decision_findings(balance),
        *_utility_findings(columns[schema.utility], schema.utility),
        *(f for name in schema.state_variables for f in _state_findings(name, columns, schema)),
    )
    return DecisionsDiagnosis(table.rows, contexts, balance, findings)


def _counts(column: Column) -> dict[Value, int]:
    counts = np.bincount(column.data[~column.missing].astype(np.int64), minlength=1)
    return dict(zip(column.domain, counts.tolist(), strict=False))


def _decision_findings(balance: Mapping[str, Mapping[Value, int]]) -> Iterator[Finding]:
    for name, counts in balance.items():
        if len(counts) == 1:
            only = next(iter(counts))
            yield Finding(
                "warning", "decisions", f"decision {name!r} was always the same, {only}",
                "Nothing is known about other choices: log some, or remove the decision",
            )  # fmt: skip
        rare = [str(value) for value, count in counts.items() if count < FEW]
        if rare and len(counts) > 1:
            yield Finding(
                "note", "coverage",
                f"values of {name!r} in fewer than {FEW} rows: {', '.join(rare[:12])}",
                "Check the standard errors of their values",
            )  # fmt: skip


def _utility_findings(column: Column, name: str) -> Iterator[Finding]:
    if column.missing.any():
        yield Finding(
            "error", "missing", f"utility {name!r} is missing in {int(column.missing.sum())} rows",
            "Remove these rows, or fill in the utility",
        )  # fmt: skip
    elif len(np.unique(column.data)) == 1:
        yield Finding(
            "warning", "utility", f"utility {name!r} was always the same, {column.data[0]:g}",
            "All decisions would have the same value: check that it is the right column",
        )  # fmt: skip


def _state_findings(name: str, columns: Mapping[str, Column], schema: Schema) -> Iterator[Finding]:
    column, without = columns[name], order_without(schema, name)
    known = column.data[~column.missing]
    distinct = len(np.unique(known))
    if distinct <= 1:
        yield Finding(
            "note", "constant", f"{name!r} has at most one value",
            "It carries no information: remove it", without,
        )  # fmt: skip
        return
    if column.missing.any():
        yield Finding(
            "note", "missing", f"{name!r} is missing in {column.missing.mean():.1%} of rows",
            "Soft classes average over it; intervals leave out rows where a split needs it",
        )  # fmt: skip
    if column.kind is Kind.CATEGORICAL and distinct > len(known) / 2 and len(known) >= FEW:
        yield Finding(
            "warning", "identifier", f"{name!r} has {distinct} values in {len(known)} rows",
            "If it is an identifier, remove it", without,
        )  # fmt: skip
    earned = columns[schema.utility].data[~column.missing]
    before = name in schema.information_sets[0]
    if before and column.kind is not Kind.CATEGORICAL and np.ptp(earned) > 0:
        numbers = column.numbers()[~column.missing]
        if abs(np.corrcoef(numbers, earned)[0, 1]) > GIVEN_AWAY:
            yield Finding(
                "warning", "leak", f"{name!r} determines the utility {schema.utility!r}",
                "It is probably known only after the decision: remove it", without,
            )  # fmt: skip
