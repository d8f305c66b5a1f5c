"""The policy whose worst returns are best: the highest conditional value at risk.

The mean of the worst share α of returns R is the maximum over budgets b of b - E[(b - R)⁺] / α. So
for each budget the expected shortfall E[(b - R)⁺] is minimised. What is left of the budget after
some steps is b less what was earned: decisions depend on the interface node and on that. One pass
backwards, with an axis of budgets, serves all b at once.
"""

import math
from typing import Any

import numpy as np

from rspmn.errors import EvidenceError
from rspmn.explain.outcome_rows import OutcomeRows
from rspmn.explain.policy_stages import POINTS, Decide, PolicyStages, Rewards, known_part
from rspmn.explain.return_distribution import ReturnDistribution, check_share
from rspmn.explain.shortfall import Shortfalls, range_of_returns
from rspmn.explain.support import Support, common_unit
from rspmn.infer.criterion import MEU
from rspmn.infer.policy import Policy
from rspmn.types import Array, Ints
from rspmn.values import Value


class TailPolicy:
    """Makes the mean of the worst share of returns as high as can be. Made by `Policy.tail`.

    Of actions that make no difference to these, the one of highest expected utility is taken.

    Parameters
    ----------
    policy
        What is best on average, over a horizon.
    share
        The share of worst returns, above 0 and at most 1.
    points
        The budgets that are kept apart, at most; fewer if rewards are multiples of a unit.
    """

    def __init__(self, policy: Policy, share: float, points: int = POINTS) -> None:
        check_share(share)
        if policy.criterion is not MEU:
            raise EvidenceError("tail: expected a policy that maximises the expected utility")
        if policy.horizon is None:
            raise EvidenceError("tail: the policy needs a horizon")
        self.policy, self.share, self.horizon = policy, share, policy.horizon
        self._rows = OutcomeRows(policy.model, policy.planned.offers)
        self._afters = [policy.planned.after(t) for t in range(policy.horizon)]
        self._rewards = Rewards(self._rows, policy.horizon)
        self.budgets, unit = self._grid(points)
        #: How much higher the mean of the worst may be, as budgets are rounded: a function of slope
        #: 0 to 1 is at most a quarter of a unit from a line between two points, in each step.
        self.error = policy.horizon * unit / 4 / share
        short = np.tile(np.maximum(self.budgets.points, 0.0), (policy.model.num_interfaces, 1))
        self._choices: list[Any] = []  # of each step, [max nodes, budgets]: branches of the node
        update = Shortfalls(self._rows, self._rewards, policy.planned, self.budgets).update
        for t in reversed(range(policy.horizon)):
            short, chosen = update(short, self._afters[t], policy.discount**t)
            self._choices.insert(0, chosen)
        start = known_part(policy.planned, self._afters[0], np.array(policy.model.starts))
        worth = self.budgets.points - start @ short / share
        best = int(np.argmax(worth))
        #: The mean of the worst share of returns, and the budget: the highest of them.
        self.value, self.budget = float(worth[best]), float(self.budgets.points[best])

    def __repr__(self) -> str:
        return f"TailPolicy({self.horizon} steps, worst {self.share:g}, {self.policy.model!r})"

    def _grid(self, points: int) -> tuple[Support, float]:
        """Return what can be left of a budget, from the least return to the most; the rounding.

        A budget that is less is never short, one that is more always is.
        """
        discount = self.policy.discount
        low, high = range_of_returns(self._rows, self._rewards, discount, self.horizon)
        if low == high:
            return Support(np.zeros(1)), 0.0
        unit = common_unit(self._rewards.values) if discount == 1 else 0.0
        rounds = not unit or (high - low) / unit > points
        unit = (high - low) / points if rounds else unit
        first, last = math.floor(low / unit + 1e-6), math.ceil(high / unit - 1e-6)
        budgets = unit * np.arange(first, last + 1, dtype=np.float64)
        return Support(budgets), unit if rounds else 0.0

    def act(self, state: object = None, t: int = 0, earned: float = 0.0) -> Any:
        """Return what to do, given what was earned so far, discounted to the start.

        In a state that may be in several interface nodes it is what most of them would do, by
        their probability.
        """
        if not 0 <= t < self.horizon:
            raise EvidenceError(f"t: expected 0 to {self.horizon - 1}, found {t!r}")
        nodes = self.policy.nodes(state)
        votes: dict[tuple[tuple[str, Value], ...], float] = {}
        for node in np.flatnonzero(nodes).tolist():
            made = self._decisions(node, t, self.budget - earned)
            votes[made] = votes.get(made, 0.0) + float(nodes[node])
        if not any(votes):
            raise EvidenceError("no decision is known in this state")
        best = dict(max(votes.items(), key=lambda each: each[1])[0])
        return best if len(self.policy.model.schema.decisions) > 1 else next(iter(best.values()))

    def _decisions(self, node: int, t: int, left: float) -> tuple[tuple[str, Value], ...]:
        """Return the decisions at an interface node, up to what is observed between them."""
        planned, offers, found = self.policy.planned, self.policy.planned.offers, []
        number = int(offers.first[node])
        budget = int(self._places(np.array([left]))[0])
        for name in planned.together:
            if number < 0:
                break
            decided = self.policy.model.template.nodes[offers.maxes[number]]
            branch = int(self._choices[t][number, budget])
            found.append((name, decided.values[branch]))
            number = int(offers.next[offers.starts[number] + branch])
        return tuple(found)

    def returns(self, state: object = None) -> ReturnDistribution:
        """Return the distribution of the return from the start, or from a state at time 0."""
        stages = PolicyStages(self._rows, self.policy.planned, self._afters, self._decide)
        return stages.distribution(self.policy.nodes(state), POINTS)

    def _decide(self, t: int, support: Support) -> Decide:
        places = self._places(self.budget - support.points)
        starts = self.policy.planned.offers.starts

        def decide(numbers: Ints, mass: Array) -> tuple[Ints, Array]:
            taken = self._choices[t][numbers][:, places]  # [n, size], branches of the nodes
            branches, masses = [np.zeros(0, np.int64)], [mass[:0]]
            for branch in np.unique(taken).tolist():
                part = np.where(taken == branch, mass, 0.0)
                here = np.flatnonzero(part.any(axis=1))
                branches.append(starts[numbers[here]] + branch)
                masses.append(part[here])
            return np.concatenate(branches), np.concatenate(masses)

        return decide

    def _places(self, left: Array) -> Ints:
        """Return the budgets that are nearest."""
        points = self.budgets.points
        if len(points) == 1:
            return np.zeros(len(left), dtype=np.int64)
        place = np.round((left - points[0]) / (points[1] - points[0]))
        return np.asarray(np.clip(place, 0, len(points) - 1), dtype=np.int64)
