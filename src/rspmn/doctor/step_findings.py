"""Findings about steps and their successors: balance, coverage, leaks, unknown successors."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rspmn.data.columns import Column, same_domain
from rspmn.data.cut_steps import cut_steps_that_differ
from rspmn.data.episodes import Followed
from rspmn.data.keys import joint_groups
from rspmn.data.windows import Windows, distinct_states
from rspmn.doctor.findings import Finding, order_without
from rspmn.doctor.roles import end_rule, written
from rspmn.schema import Kind
from rspmn.types import Array, Bools, Ints
from rspmn.values import LARGEST_UTILITY

#: A choice made in a smaller share of the steps is rare.
RARE = 0.01
#: Columns that agree in this share of the steps are the same.
SAME = 0.999
#: More utilities than this are not told value by value.
MAX_WORTHS = 20
#: A variable with more numbers than this is better known by conditions, where steps are few.
MANY_NUMBERS = 10
#: So many groups of values that are spelled alike are listed, or told apart by conditions.
MAX_SPELLINGS = 5
#: Of distinct steps, a share above this leaves nothing to compare.
MOSTLY = 0.9
#: Fewer steps than this may agree by chance.
FEW = 20
#: Numbers are far if they are less than this share, and so many times as far from the others as
#: these are apart; of fewer distinct numbers nothing is said.
FAR, APART, FEW_NUMBERS = 0.2, 5.0, 5


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
                "Their values are based on few steps: check the logged steps of an answer",
            )
    if coverage is not None:
        yield from _coverage_findings(coverage)
        if coverage.states > 0.5 * steps:
            said = f"{coverage.states} distinct states in {steps} steps: most occur once"
            yield _too_fine(windows, said)
    elif len(windows) > MOSTLY * steps >= FEW:
        said = "hardly any state occurs twice"
        yield _too_fine(windows, f"{len(windows)} of {steps} steps are distinct: {said}")
    unknown = int(windows.counts[(windows.followed == Followed.UNKNOWN) | windows.went_on].sum())
    if unknown > 0.02 * steps:
        yield Finding(
            "warning" if unknown > 0.2 * steps else "note",
            "successors",
            f"{unknown} of {steps} steps ({unknown / steps:.1%}) have no known successor",
            "Log the state after the last step as a row without decisions, and declare which "
            "episodes terminated",
        )
    if (cut := cut_steps_that_differ(windows)) is not None:
        yield Finding(
            "warning",
            "cut steps",
            str(cut),
            "What they earn is not counted. If episodes end there, declare which terminated; else "
            "log the state that followed as a row without decisions",
        )


def far_findings(windows: Windows) -> Iterator[Finding]:
    """Return numbers of the state that are far from all others, such as -999 for a missing one."""
    for name in windows.schema.state_variables:
        column = windows.columns[name]
        if column.kind is not Kind.CONTINUOUS:
            continue
        numbers = column.numbers()
        far = far_numbers(numbers, windows.counts)
        if far.any():
            steps, known = int(windows.counts[far].sum()), np.isfinite(numbers)
            near, shown = numbers[known & ~far], np.unique(numbers[far])[:3]
            yield Finding(
                "warning",
                "far numbers",
                f"{name!r}: {steps} of {int(windows.counts[known].sum())} numbers are far from the "
                f"others, {near.min():.4g} to {near.max():.4g}: such as "
                f"{', '.join(f'{x:.4g}' for x in shown.tolist())}",
                "If they mean that nothing was measured, leave these cells empty: states are "
                "divided between the least and the most",
            )


def far_numbers(numbers: Array, counts: Ints) -> Bools:  # [n]
    """Return which numbers are few, and further from the others than these are apart by far.

    The others are those closest together that make up most of them, and all that can be reached
    from there by short ways.

    >>> far_numbers(np.array([0.1, 0.9, -999.0, 0.4, 0.5]), np.array([1, 1, 1, 2, 4]))
    array([False, False,  True, False, False])
    """
    found = np.isfinite(numbers)
    here = np.flatnonzero(found)[np.argsort(numbers[found], kind="stable")]
    if len(here) < FEW_NUMBERS:
        return np.zeros(len(numbers), dtype=bool)
    at, below = numbers[here], np.cumsum(counts[here])
    last = np.searchsorted(below, below - counts[here] + (1 - FAR) * below[-1])
    first = np.flatnonzero(last < len(here))
    low = int(first[np.argmin(at[last[first]] - at[first])])
    high = int(last[low])
    while True:
        reach = APART * (at[high] - at[low])
        wider = low - (low > 0 and at[low] - at[low - 1] <= reach)
        higher = high + (high + 1 < len(at) and at[high + 1] - at[high] <= reach)
        if (wider, higher) == (low, high):
            break
        low, high = wider, higher
    found[here[low : high + 1]] = False
    return found if reach > 0 else np.zeros(len(numbers), dtype=bool)


def _too_fine(windows: Windows, found: str) -> Finding:
    """Return the finding that states hardly occur twice, with conditions to use for integers."""
    schema, conditions = windows.schema, {}
    real = [n for n in schema.state_variables if schema.kinds.get(n) == Kind.CONTINUOUS]
    if real:
        advice = f"The relevant ones of {', '.join(real)} are learned as soft boxes"
        return Finding("note", "distinct", found, f"{advice}; `rspmn learn` lists them")
    for name in schema.state_variables:
        numbers = _numbers(windows.columns[name])
        if numbers is not None and len(np.unique(numbers)) > MANY_NUMBERS:
            conditions[name] = f"{written(name)} > {np.nanmedian(numbers):.3g}"
    groups = [[conditions.get(name, name) for name in group] for group in schema.order]
    advice = "Use fewer or coarser state variables"
    if conditions:
        advice += ": conditions instead of numbers, with meaningful limits (here: medians)"
    line = f"order = {json.dumps(groups, ensure_ascii=False)}" if conditions else ""
    return Finding("warning", "distinct", found, advice, line)


def _coverage_findings(coverage: Coverage) -> Iterator[Finding]:
    alone = coverage.states_with_one_choice
    if coverage.choices > 1 and alone > 0.1 * coverage.states:
        yield Finding(
            "warning",
            "coverage",
            f"in {alone} of {coverage.states} states only one choice was ever made",
            "Choices cannot be compared there: a policy can only repeat the logged one",
        )
    if coverage.states_never_acted_in:
        yield Finding(
            "note",
            "frontier",
            f"{coverage.states_never_acted_in} states were reached, in {coverage.steps_to_them} "
            "steps, but no decision was logged in them",
            "They have the value of the worst state",
        )


def spelling_findings(windows: Windows) -> Iterator[Finding]:
    """Return variables with values that differ only in case or spaces."""
    schema = windows.schema
    for name in (*schema.state_variables, *schema.decisions):
        column = windows.columns[name]
        if column.kind is not Kind.CATEGORICAL:
            continue
        alike: dict[str, list[str]] = {}
        for value in column.domain:
            alike.setdefault("".join(str(value).split()).casefold(), []).append(str(value))
        twice = [values for values in alike.values() if len(values) > 1]
        if not twice:
            continue
        shown = "; ".join(", ".join(map(repr, values)) for values in twice[:MAX_SPELLINGS])
        advice, line = "If they are the same, write them alike in the log", ""
        if name in schema.state_variables and len(alike) <= MAX_SPELLINGS:
            groups = sorted(alike.values(), key=len, reverse=True)
            conditions = [end_rule(name, values) for values in groups[: max(1, len(groups) - 1)]]
            order = [[*group] for group in schema.order]
            place = next(group for group in order if name in group)
            place[place.index(name) : place.index(name) + 1] = conditions
            advice += ", or use conditions that hold for all spellings"
            line = f"order = {json.dumps(order, ensure_ascii=False)}"
        found = f"{name!r} has values that differ only in case or spaces: {shown}"
        yield Finding("warning", "spelling", found, advice, line)


def leak_findings(windows: Windows) -> Iterator[Finding]:
    """Return state variables that hold what is only known after the decision."""
    schema = windows.schema
    earned = windows.columns[schema.utility]
    for name in schema.state_variables:
        how = _gives_away(windows, windows.columns[name], earned)
        if how:
            yield Finding(
                "warning",
                "leak",
                f"{name!r} determines the utility of the same step: {how}",
                "If it was not known before the decision, remove it from the order",
                order_without(schema, name),
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
                    "It was not known before the decision: remove it from the schema",
                    order_without(schema, name),
                )


def _gives_away(windows: Windows, column: Column, earned: Column) -> str:
    """Return how a column tells the utility: as a linear function, or value by value; or ""."""
    known = ~column.missing
    counts, utility = windows.counts[known].astype(float), earned.data[known]
    if counts.sum() < FEW or utility.min() == utility.max():
        return ""
    numbers = _numbers(column)
    if numbers is not None and _agree(windows, numbers == earned.data, known):
        return "they are equal"
    if numbers is not None:
        slope, start = _line(numbers[known], utility, counts)
        if slope and _agree(windows, _near(start + slope * numbers, earned.data), known):
            sign = "-" if slope < 0 else "+"
            return f"the utility is {start:.6g} {sign} {abs(slope):.6g} times it"
    values, codes = np.unique(utility, return_inverse=True)
    if column.kind is Kind.CONTINUOUS or not 1 < len(values) <= MAX_WORTHS:
        return ""
    table = np.zeros((len(column.domain), len(values)))
    np.add.at(table, (column.data[known], codes), counts)
    if min(table.max(axis=0).sum(), table.max(axis=1).sum()) < SAME * counts.sum():
        return ""
    best, seen = values[table.argmax(axis=1)], np.flatnonzero(table.sum(axis=1))
    return ", ".join(f"{best[k]:g} if it is {column.domain[k]!r}" for k in seen[:5])


def _line(numbers: Array, utility: Array, counts: Array) -> tuple[float, float]:
    """Return slope and start of the line of least squares; 0 if squares are too large."""
    if max(float(np.abs(numbers).max()), float(np.abs(utility).max())) > LARGEST_UTILITY:
        return 0.0, 0.0
    mean, earned = np.average(numbers, weights=counts), np.average(utility, weights=counts)
    spread = np.average((numbers - mean) ** 2, weights=counts)
    if not spread:
        return 0.0, 0.0
    slope = np.average((numbers - mean) * (utility - earned), weights=counts) / spread
    return float(slope), float(earned - slope * mean)


def _near(one: Array, other: Array) -> Bools:
    return np.asarray(np.isclose(one, other, rtol=1e-6, atol=1e-9))


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
