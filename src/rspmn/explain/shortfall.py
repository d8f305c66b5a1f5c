"""One step backwards of expected shortfalls, by what is left of a budget."""

from typing import Any

import numpy as np

from rspmn.explain.outcome_rows import MixtureRows, OutcomeRows
from rspmn.explain.policy_stages import Rewards
from rspmn.explain.support import ROUNDING, Support, by_group
from rspmn.infer.compiled.layers import ranges
from rspmn.infer.compiled.planned import Plan
from rspmn.infer.criterion import LEAST_KNOWN
from rspmn.types import Array, Bools, Ints

#: Shortfalls that differ by no more than this share of them are a tie.
TIE = 1e-9


class Shortfalls:
    """Chooses branches of least expected shortfall.

    `rows`, `rewards`: the template by outcome, and what outcomes earn. `planned`: what is best on
    average: it decides ties, and says which branches lead to something known. `budgets`: what may
    be left of a budget.
    """

    def __init__(
        self, rows: OutcomeRows, rewards: Rewards, planned: Plan, budgets: Support
    ) -> None:
        self.rows, self.rewards, self.planned, self.budgets = rows, rewards, planned, budgets
        self.rounding = ROUNDING * float(np.abs(budgets.points).max())

    def update(self, short: Array, after: int, discount: float) -> tuple[Array, Any]:
        """Return the shortfalls of interface nodes a step earlier, and the branches taken.

        `short`: those of a step later [interfaces, budgets]. `after`: the number of steps after
        this one. `discount`: of this step's rewards.

        Returns
        -------
        tuple
            The shortfalls, and of each max node and budget which branch is taken.
        """
        rows, at = self.rows, self.planned.at(after)
        step = _Step(self, short, after, discount)
        chosen = np.zeros((len(rows.offers.maxes), short.shape[1]), dtype=np.uint16)
        for numbers in rows.levels:
            starts, stops = rows.offers.starts[numbers], rows.offers.starts[numbers + 1]
            branches, first = ranges(starts, stops)
            worth = step.of_rows(rows.branches[branches])
            worth[~_allowed(at.known[branches], first[:-1])] = np.inf
            found, taken = self._least(worth, at.worth[branches], first[:-1])
            step.at_max[numbers] = np.where(np.isinf(found), 0.0, found)  # not counted: share 0
            chosen[numbers] = taken - first[:-1, None]
        return step.of_rows(rows.roots)[self.planned.model.bellman.copied(at.choices)], chosen

    def _least(self, worth: Array, mean: Array, starts: Ints) -> tuple[Array, Ints]:
        """Return the least shortfall of each max node, and the branch that has it.

        Of several, that of the highest mean. `worth` is [branches, budgets], `mean` [branches].
        """
        counts = np.diff(np.append(starts, len(worth)))
        least = np.minimum.reduceat(worth, starts, axis=0)
        near = worth <= np.repeat(least * (1 + TIE) + self.rounding, counts, axis=0)
        ranked = np.where(near, mean[:, None], -np.inf)
        best = np.repeat(np.maximum.reduceat(ranked, starts, axis=0), counts, axis=0)
        places = np.where(ranked >= best, np.arange(len(worth))[:, None], len(worth))
        return least, np.asarray(np.minimum.reduceat(places, starts, axis=0))


class _Step:
    """What rows of a template fall short by, given a step later."""

    def __init__(self, of: Shortfalls, short: Array, after: int, discount: float) -> None:
        rows = of.rows
        self.shares = rows.shares(of.planned.at(after).choices)
        last = of.planned.horizon is not None and after == 0
        self.unknown = np.zeros(len(rows.earned)) if last else rows.unknown
        leads = rows.leads.copy()
        if rows.model.unknown is not None and not last:
            leads.data[leads.indices == rows.model.unknown] = 0.0
        self.rewards, self.budgets, self.discount = of.rewards, of.budgets, discount
        self.later = leads @ short  # [outcomes, budgets], before an outcome is paid
        self.paid = self._pay(self.later, np.arange(len(rows.earned)), 1 - self.unknown)
        self.over = np.maximum(of.budgets.points, 0.0)  # where nothing follows
        self.at_max = np.zeros((len(self.shares), short.shape[1]))  # of the levels done so far

    def of_rows(self, rows: MixtureRows) -> Array:  # [rows, budgets]
        """Return what mixtures fall short by; as in `Flow`, what is not known is as the rest."""
        decisions = rows.decisions * self.shares[None, :]
        parts = rows.outcomes.sum(axis=1) + rows.decisions.sum(axis=1)
        rest = np.where(parts > 1 - 1e-9, 0.0, 1 - parts)[:, None] * self.over
        found = rows.outcomes @ self.paid + decisions @ self.at_max + rest
        entries = rows.outcomes.tocoo()
        row, outcome = entries.coords
        gone = np.flatnonzero(self.unknown[outcome] > 0)
        lost = np.asarray(rows.decisions @ (1 - self.shares))
        if len(gone) or lost.any():
            known = rows.outcomes @ (1 - self.unknown) + decisions.sum(axis=1) + 1 - parts
            other = rows.outcomes @ self.later + decisions @ self.at_max + rest
            other = other / np.maximum(known, 1e-300)[:, None]
            found = found + lost[:, None] * other
            weight = (entries.data * self.unknown[outcome])[gone, None]
            np.add.at(found, row[gone], weight * self._pay(other[row[gone]], outcome[gone]))
        return np.asarray(found)

    def _pay(self, short: Array, outcomes: Ints, slope: Array | float = 1.0) -> Array:
        """Return shortfalls by what was left before outcomes were paid, given those after it.

        Beyond the last budget, which no return exceeds, they rise with it: by `slope`, the
        probability that they are counted.
        """
        slope = np.broadcast_to(slope, len(outcomes))
        found, points = np.zeros_like(short), self.budgets.points
        for codes in self.rewards.code[:, outcomes]:
            for code, rows in by_group(codes):
                left = points - self.discount * self.rewards.values[code]
                first, second, share = self.budgets.between(left)
                part = short[rows]
                there = part[:, first]
                if share.any():
                    there = (1 - share) * there + share * part[:, second]
                found[rows] += there + slope[rows, None] * np.maximum(left - points[-1], 0.0)
        return found / len(self.rewards.code)


def _allowed(known: Array, starts: Ints) -> Bools:  # [branches]
    """Return the branches that compete: about as much is known of them as of any of the node."""
    counts = np.diff(np.append(starts, len(known)))
    most = np.repeat(np.maximum.reduceat(known, starts), counts)
    return np.asarray((known > 0) & (known >= LEAST_KNOWN * most))


def range_of_returns(
    rows: OutcomeRows, rewards: Rewards, discount: float, steps: int
) -> tuple[float, float]:
    """Return what can be earned from any interface node on, at any time: the least and most.

    It may be less, or more, than is possible: what is not known to follow may be anything.
    """
    values = rewards.values[rewards.code]  # [values of a reward, outcomes]
    found = []
    for sign in (-1.0, 1.0):
        most, ever = np.zeros(rows.model.num_interfaces), 0.0
        for t in reversed(range(steps)):
            earned = sign * discount**t * values
            later = np.maximum.reduceat(most[rows.leads.indices], rows.leads.indptr[:-1])
            ends = earned.max(axis=0) + later  # [outcomes]
            at_max = np.full(len(rows.offers.maxes), -np.inf)
            for numbers in rows.levels:
                starts = rows.offers.starts
                branches, first = ranges(starts[numbers], starts[numbers + 1])
                worth = _highest(rows.branches[branches], ends, at_max)
                at_max[numbers] = np.maximum.reduceat(worth, first[:-1])
            most = _highest(rows.roots, ends, at_max)
            if rows.model.unknown is not None:
                most[rows.model.unknown] = most.max()
            ever = max(ever, float(most.max()))
        found.append(sign * ever)
    return found[0], found[1]


def _highest(rows: MixtureRows, ends: Array, at_max: Array) -> Array:  # [rows]
    """Return the most that any outcome or decision of a mixture has; 0 if it has none."""
    found = np.full(rows.outcomes.shape[0], -np.inf)
    for matrix, numbers in ((rows.outcomes, ends), (rows.decisions, at_max)):
        some = np.flatnonzero(np.diff(matrix.indptr))
        if len(some):
            highest = np.maximum.reduceat(numbers[matrix.indices], matrix.indptr[some])
            found[some] = np.maximum(found[some], highest)
    return np.where(np.isneginf(found), 0.0, found)
