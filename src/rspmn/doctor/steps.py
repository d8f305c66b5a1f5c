"""Findings about steps and their successors: balance, coverage, leaks, unknown successors."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rspmn.data.columns import Column, same_domain
from rspmn.data.episodes import Followed
from rspmn.data.keys import joint_groups
from rspmn.data.windows import Windows, distinct_states
from rspmn.doctor.findings import Finding
from rspmn.schema import Kind
from rspmn.types import Array, Bools

#: A choice made in a smaller share of the steps is rare.
RARE = 0.01
#: Columns that agree in this share of the steps are the same.
SAME = 0.999
#: Fewer steps than this may agree by chance.
FEW = 20


@dataclass(frozen=True)
class Coverage:
    """How many of the possible choices were made."""

    states: int  # distinct
    states_with_one_choice: int
    choices: int  # distinct decisions, several in a step counted together
    pairs: int  # of a state and a choice that were seen
    steps_in_fully_tried: float  # share of steps in states in which every choice was tried
    states_never_acted_in: int  # that steps led to
    steps_to_them: int


def balance_of(windows: Windows) -> dict[str, dict[str, int]]:
    """Return how often each value of each decision was chosen."""
    found = {}
    for name in windows.schema.decisions:
        column = windows.columns[name]
        counts = np.bincount(column.data, weights=windows.counts, minlength=len(column.domain))
        found[name] = {
            str(value): int(count) for value, count in zip(column.domain, counts, strict=True)
        }
    return found


def coverage_of(windows: Windows) -> Coverage | None:
    """Return how much was tried; None where a state variable is continuous."""
    schema = windows.schema
    if any(windows.columns[n].kind is Kind.CONTINUOUS for n in schema.information_sets[0]):
        return None
    states = distinct_states(windows)
    choice = joint_groups([windows.columns[n] for n in schema.decisions], len(windows))
    pairs = np.unique(states.of_steps * choice.size + choice.codes)
    tried = np.bincount(pairs // choice.size, minlength=states.count)
    visits = np.bincount(states.of_steps, weights=windows.counts, minlength=states.count)
    led = states.of_successors >= 0
    arrived = np.bincount(
        states.of_successors[led], weights=windows.counts[led], minlength=states.count
    )
    never = visits == 0
    return Coverage(
        int((~never).sum()),
        int((tried == 1).sum()),
        choice.size,
        len(pairs),
        float(visits[tried == choice.size].sum() / visits.sum()),
        int(never.sum()),
        int(arrived[never].sum()),
    )


def step_findings(windows: Windows, coverage: Coverage | None) -> Iterator[Finding]:
    """Return what is found about decisions, what was tried where, and unknown successors."""
    steps = int(windows.counts.sum())
    for name, counts in balance_of(windows).items():
        rare = {value: n for value, n in counts.items() if n < RARE * steps}
        if rare:
            shown = ", ".join(f"{value} ({n})" for value, n in list(rare.items())[:5])
            yield Finding(
                "warning",
                "balance",
                f"decision {name!r}: {len(rare)} of {len(counts)} choices were made in less than "
                f"{RARE:.0%} of steps: {shown}",
                "Their value is known from few steps: check the number of steps behind an answer",
            )
    if coverage is not None:
        yield from _coverage_findings(coverage, steps)
    unknown = int(windows.counts[windows.followed == Followed.UNKNOWN].sum())
    if unknown > 0.02 * steps:
        yield Finding(
            "warning" if unknown > 0.2 * steps else "note",
            "successors",
            f"{unknown} of {steps} steps ({unknown / steps:.1%}) have no known successor",
            "Keep the state after the last step as a row without decisions, and say which episodes "
            "terminated",
        )


def _coverage_findings(coverage: Coverage, steps: int) -> Iterator[Finding]:
    alone = coverage.states_with_one_choice
    if coverage.choices > 1 and alone > 0.1 * coverage.states:
        yield Finding(
            "warning",
            "coverage",
            f"in {alone} of {coverage.states} states only one choice was ever made",
            "No choices can be compared there: a policy can only repeat it",
        )
    if coverage.states_never_acted_in:
        yield Finding(
            "note",
            "frontier",
            f"{coverage.states_never_acted_in} states were reached, in {coverage.steps_to_them} "
            "steps, but never acted in",
            "They are valued as the worst state",
        )
    if coverage.states > 0.5 * steps:
        yield Finding(
            "warning",
            "coverage",
            f"{coverage.states} distinct states in {steps} steps: most were seen once",
            "Use fewer or coarser state variables",
        )


def leak_findings(windows: Windows) -> Iterator[Finding]:
    """Return state variables that hold what is only known after the decision."""
    schema = windows.schema
    utility = windows.columns[schema.utility].data
    for name in schema.state_variables:
        column = windows.columns[name]
        numbers = _numbers(column)
        varies = len(np.unique(utility)) > 1
        if varies and numbers is not None and _agree(windows, numbers == utility):
            yield Finding(
                "warning",
                "leak",
                f"{name!r} equals the utility of the same step",
                "It was not known before the decision: leave it out of the schema",
            )
    known = windows.followed <= Followed.STATE
    for after, following in windows.next_columns.items():
        now = windows.columns[after]
        if after not in schema.state_variables or _agree(windows, _equal(now, following), known):
            continue  # it never changes, so that it can be predicted is no leak
        for name in schema.state_variables:
            column = windows.columns[name]
            if name != after and _agree(windows, _equal(column, following), known):
                yield Finding(
                    "warning",
                    "leak",
                    f"{name!r} equals {after!r} of the next step",
                    "It was not known before the decision: leave it out of the schema",
                )


def _numbers(column: Column) -> Array | None:
    return None if column.kind is Kind.CATEGORICAL else column.numbers()


def _equal(one: Column, other: Column) -> Bools:
    """Return where two columns have the same value; nowhere if they are of different types."""
    a, b = _numbers(one), _numbers(other)
    if a is not None and b is not None:
        return np.asarray(a == b)  # a missing value, NaN, equals nothing
    if one.kind is not other.kind or set(map(type, one.domain)) != set(map(type, other.domain)):
        return np.zeros(len(one), dtype=bool)
    one, other = same_domain(one, other, "")
    return np.asarray((one.data == other.data) & ~one.missing)


def _agree(windows: Windows, equal: Bools, among: Bools | None = None) -> bool:
    """Return whether something holds in nearly all steps, of which there must be some."""
    chosen = np.ones(len(windows), dtype=bool) if among is None else among
    steps = windows.counts[chosen].sum()
    return bool(steps >= FEW and windows.counts[chosen & equal].sum() >= SAME * steps)
