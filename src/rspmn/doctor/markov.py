"""The Markov property: whether the next step depends on the previous one, given this one.

If it does, the state lacks a variable, and what is learned of the future is an average over that
variable. The test is the stratified G-test of learning: the variables of step t-1 against those of
step t+1 and the utility of step t, given the state and the decisions of step t.

If decisions depend on the previous step as well, they were made by what the state lacks. Then the
effect of a decision cannot be told from that of its reason.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from rspmn.data.episodes import Episodes
from rspmn.doctor.findings import Finding
from rspmn.learn.structure.independence import pair_statistics
from rspmn.learn.structure.rows import Rows, group_rows
from rspmn.schema import Kind
from rspmn.types import Ints

#: The probability that a log of a Markov process fails the test.
ALPHA = 0.01
#: A dependence that explains less than this share of what is open is not worth a variable: in a
#: large log the least of them is significant.
LEAST_SHARE = 0.01


@dataclass(frozen=True)
class MarkovTest:
    """The result of the test."""

    steps: int  # with one before and one after, nothing missing in the three
    tests: int
    #: The dependences: (variable before, variable after, p-value, share of the entropy explained).
    dependences: tuple[tuple[str, str, float, float], ...]
    #: What explains decisions, given the state, beside what follows: (variable before, decision).
    reasons: tuple[tuple[str, str], ...] = ()
    not_tested: str = ""  # why

    @property
    def findings(self) -> list[Finding]:
        """The result as findings."""
        if self.not_tested:
            said = f"the Markov property was not tested: {self.not_tested}"
            advice = "The test needs variables with few values and episodes of three or more steps"
            return [Finding("note", "markov", said, advice)]
        confounded = [
            Finding(
                "warning",
                "confounding",
                f"{decision!r} depended on {before!r} of the previous step, and what followed does",
                "Actions were chosen by what the state lacks, so that their effects cannot be told "
                f"from those of its cause: add {before!r} of the previous step as a state variable",
            )
            for before, decision in self.reasons
        ]
        return confounded + [
            Finding(
                "warning",
                "markov",
                f"{after!r} of the next step depends on {before!r} of the previous one "
                f"(p = {p:.1g}; it explains {share:.1%} of the remaining entropy)",
                f"The state is incomplete: add {before!r} of the previous step, or the cause of "
                "the dependence, as a state variable",
            )
            for before, after, p, share in self.dependences[:5]
        ]


def markov_test(log: Episodes, without: Collection[str] = ()) -> MarkovTest:
    """Test the Markov property on a log, of all variables but some that nothing depends on.

    >>> from rspmn.envs.frozen_lake import frozen_lake
    >>> markov_test(frozen_lake().generate(2000, 20, 0)).dependences
    ()
    """
    schema = log.schema
    state = [name for name in schema.state_variables if name not in without]
    numbers = [n for n in state if log.columns[n].kind is Kind.CONTINUOUS]
    if numbers:
        # given a bin of a number, its exact value still matters: the test would always find that
        said = f"continuous variables: {', '.join(numbers)}"
        return MarkovTest(0, 0, (), not_tested=said)
    given = [*state, *schema.decisions]
    known_first = [name for name in schema.information_sets[0] if name in state]
    now = _whole(log, [*given, schema.utility], known_first)
    if not len(now):
        said = "no episode has three steps with nothing missing"
        return MarkovTest(0, 0, (), not_tested=said)
    columns = {f"now {name}": log.columns[name].take(now) for name in given}
    before = {f"before {n}": log.columns[n].take(now - 1) for n in (*given, schema.utility)}
    after = {f"after {n}": log.columns[n].take(now + 1) for n in known_first}
    after[f"now {schema.utility}"] = log.columns[schema.utility].take(now)
    decisions = [f"now {name}" for name in schema.decisions]
    rows = group_rows(columns | before | after, np.ones(len(now)), 10, decisions)
    dependences = _dependences(rows, [*before], [*after], [*columns])
    explained = {before for before, *_ in dependences}
    reasons = [
        (reason, decision)
        for k, decision in enumerate(decisions)
        for reason, *_ in _dependences(
            rows, [*before], [decision], [f"now {name}" for name in state] + decisions[:k]
        )
        if reason in explained
    ]  # fmt: skip
    named = tuple((reason, _name(decision)) for reason, decision in reasons)
    return MarkovTest(len(now), len(before) * len(after), tuple(dependences), named)


def _dependences(
    rows: Rows, before: Sequence[str], after: Sequence[str], given: Sequence[str]
) -> list[tuple[str, str, float, float]]:
    """Return what depends on what, given some columns: names, p-values and shares explained."""
    strata = rows.joint_codes(given)
    statistics = pair_statistics(rows, before, after, strata)
    p_values, found = statistics.p_values(), []
    for i, j in np.argwhere(p_values < ALPHA / p_values.size).tolist():
        excess = float(statistics.g[i, j] - statistics.freedom[i, j])
        share = _share(rows, after[j], strata, excess)
        if share >= LEAST_SHARE:
            found.append((_name(before[i]), _name(after[j]), float(p_values[i, j]), share))
    return sorted(found, key=lambda each: -each[3])


def _whole(log: Episodes, given: Sequence[str], after: Sequence[str]) -> Ints:
    """Return the steps between two others, nothing missing in the three.

    Where a value is missing, the step before tells what it was.
    """
    inside = np.ones(log.num_steps, dtype=bool)
    inside[log.offsets[:-1]] = False
    inside[log.offsets[1:] - 1] = False
    now = np.flatnonzero(inside)
    known = ~np.any([log.columns[name].missing for name in given], axis=0)
    seen = ~np.any([log.columns[name].missing for name in after], axis=0) if after else known
    return np.asarray(now[known[now - 1] & known[now] & seen[now + 1]])


def _name(column: str) -> str:
    return column.split(" ", 1)[1]


def _share(rows: Rows, name: str, strata: Ints, excess: float) -> float:
    """Return the share of a variable's entropy, given the strata, that G beyond chance explains."""
    codes = rows.codes(name).astype(np.int64)
    _, stratum = np.unique(strata, return_inverse=True)
    cell = np.bincount(stratum * (codes.max() + 2) + codes + 1, weights=rows.weights)
    cell, total = cell[cell > 0], np.bincount(stratum, weights=rows.weights)
    entropy = (total * np.log(total)).sum() - (cell * np.log(cell)).sum()
    return float(np.clip(excess / 2 / entropy, 0.0, 1.0)) if entropy > 0 else 0.0
