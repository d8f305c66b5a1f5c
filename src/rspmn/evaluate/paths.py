"""Which branches of a template a target takes.

Of a decision that was never logged in an interface node, or only where the log was cut, nothing is
known but what others led to there. One of these stands in for it: in draws from the posterior one
that is drawn, so that intervals know how far decisions of the node differ.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from rspmn.errors import EvidenceError
from rspmn.evaluate.logged import Situations
from rspmn.infer.compiled.layers import ranges
from rspmn.model import RSPMN
from rspmn.trust.drawn_worlds import OwnWorld
from rspmn.types import Array, Bools, Ints
from rspmn.values import Value


class Paths:
    """Which branches of a template the joint decisions of a step take."""

    def __init__(self, model: RSPMN, situations: Situations) -> None:
        self.model, self.situations = model, situations
        offers, names = model.offers, model.schema.decisions
        lone = offers.first < 0
        lone[[number for number in (model.end, model.unknown) if number is not None]] = False
        if lone.any():
            raise EvidenceError(
                f"interface node {int(np.argmax(lone))} has other nodes between its state and its "
                "first decision: policies cannot be evaluated in this model"
            )
        at = np.repeat(offers.first[:, None], len(situations.decisions), axis=1)
        taken = []
        for place, name in enumerate(names):
            code: dict[Value | None, int] = {v: k for k, v in enumerate(offers.values(name))}
            codes = np.array([code.get(made[place], -1) for made in situations.decisions])
            table = np.pad(offers.branches(name), ((0, 1), (0, 1)), constant_values=-1)
            taken.append(table[at, codes])
            at = np.append(offers.next, -1)[taken[-1]]
        self.offers = offers
        #: Of each decision, the branch that a joint decision takes in an interface node, as
        #: `Offers` numbers them; -1 if it is not offered. [interfaces, J] each
        self.taken: list[Ints] = [np.where(taken[-1] >= 0, branch, -1) for branch in taken]

    @property
    def last(self) -> Ints:  # [interfaces, J]
        """The branch of the last decision."""
        return self.taken[-1]

    @cached_property
    def goes_on(self) -> Bools:  # [interfaces, J]
        """Which joint decisions are offered, and known to lead anywhere."""
        closed = np.ones(int(self.offers.starts[-1]) + 1, dtype=bool)
        closed[self._places[0]] = OwnWorld(self.model).closed
        return np.asarray(~closed[self.last])

    @cached_property
    def logged(self) -> Array:  # [interfaces, J]
        """How often each joint decision was made in an interface node, of those that go on."""
        steps = np.zeros(int(self.offers.starts[-1]) + 1)
        steps[self._places[0]] = self.model.bellman.levels[0].branches.steps
        return np.where(self.goes_on & np.isfinite(steps[self.last]), steps[self.last], 0.0)

    def stand_ins(self, draws: int, rng: np.random.Generator) -> Ints:  # [draws, interfaces]
        """Return a logged decision of each interface node, drawn by how often it was made."""
        bounds = np.cumsum(self.logged, axis=1)
        point = rng.random((draws, len(bounds))) * bounds[:, -1]
        found = np.zeros(point.shape, dtype=np.int64)
        for bound in bounds.T[:-1]:
            found += point >= bound
        return found

    def taken_by(
        self, probabilities: Array, last: bool = False, stand_ins: Ints | None = None
    ) -> list[Array]:
        """Return how often branches are taken, as the levels of the Bellman update have them.

        `probabilities`: those of joint decisions in the states of the log, [S, J]. `last`: whether
        no step follows: then a decision need not be known to lead anywhere. `stand_ins`: the
        decision that takes the place of those of which nothing is known, in each draw: [draws,
        interfaces]. By default all logged ones, as often as they were made.
        """
        situations, size = self.situations, int(self.offers.starts[-1]) + 1
        mass = situations.places.in_groups(situations.weight[:, None] * probabilities)[:-1]
        known = self.last >= 0 if last else self.goes_on
        total = self.logged.sum(axis=1)
        lost = np.where(total > 0, np.where(known, 0.0, mass).sum(axis=1), 0.0)  # [interfaces]
        mass = np.where(known, mass, 0.0)
        at = np.flatnonzero(lost)
        if stand_ins is None:
            mass[at] += (lost / np.maximum(total, 1e-300))[at, None] * self.logged[at]
        found = np.zeros(size)
        for branches in self.taken:
            found += np.bincount(branches.ravel() % size, mass.ravel(), size)  # -1 is the last
        if stand_ins is not None and len(at):
            found = np.tile(found, (len(stand_ins), 1))
            for branches in self.taken:
                key = np.arange(len(found))[:, None] * size + branches[at, stand_ins[:, at]]
                weights = np.broadcast_to(lost[at], key.shape).ravel()
                found += np.bincount(key.ravel(), weights, found.size).reshape(found.shape)
        return [found[..., places] for places in self._places]

    def by_branch(self, levels: Sequence[Array]) -> Array:  # [branches + 1]
        """Return numbers of levels in the order of `Offers`; the last, of no branch, is NaN."""
        found = np.full(int(self.offers.starts[-1]) + 1, np.nan)
        for places, numbers in zip(self._places, levels, strict=True):
            found[places] = np.where(np.isfinite(numbers), numbers, np.nan)
        return found

    @cached_property
    def _places(self) -> list[Ints]:
        """Where the branches of each level are in the order of `Offers`."""
        starts, found = self.offers.starts, []
        for level in self.model.bellman.levels:
            number = self.offers.number[level.nodes]
            found.append(ranges(starts[number], starts[number + 1])[0])
        return found
