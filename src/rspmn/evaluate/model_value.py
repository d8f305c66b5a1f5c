"""What a target is worth in the model: its max nodes as sums, with the target's probabilities.

The model is evaluated exactly, and in draws from the posterior of all its weights. A max node is
shared by all states of its interface node. What the target does there is averaged over these
states, by how often the log visits each and how far it belongs to the node: in the model they
behave alike. Of a soft box, it is what the target does at its knot.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rspmn.errors import EvidenceError
from rspmn.evaluate.logged import Situations
from rspmn.infer.compiled.layers import ranges
from rspmn.infer.compiled.linear_forms import Level
from rspmn.model import RSPMN
from rspmn.trust.drawn_worlds import Source, Worlds
from rspmn.trust.rules import Mixed, Rule
from rspmn.types import Array, Ints
from rspmn.values import Value

#: At most this many floats are held per chunk of draws, and so many draws.
CHUNK, MOST = 10_000_000, 100


class Paths:
    """Which branches of a template the joint decisions of a step take."""

    def __init__(self, model: RSPMN, situations: Situations) -> None:
        self.model, self.situations = model, situations
        offers, names = model.offers, model.schema.decisions
        lone = offers.first < 0
        lone[[number for number in (model.end, model.unknown) if number is not None]] = False
        if lone.any():
            raise EvidenceError(
                f"interface node {int(np.argmax(lone))} has something between its state and its "
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

    def _masses(self, probabilities: Array) -> Array:  # [branches]
        """Return how often branches are taken in the logged states, in steps."""
        situations = self.situations
        weighed = situations.weight[:, None] * probabilities
        mass = situations.places.in_groups(weighed)[:-1].ravel()
        found = np.zeros(int(self.offers.starts[-1]) + 1)
        for branches in self.taken:
            found += np.bincount(branches.ravel() % len(found), mass, len(found))  # -1 is the last
        return found[:-1]

    def taken_by(self, probabilities: Array) -> list[Array]:
        """Return how often branches are taken, as the levels of the Bellman update have them."""
        mass = self._masses(probabilities)
        return [mass[places] for places in self._places]

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


@dataclass(frozen=True, eq=False)
class ModelWorths:
    """What branches and interface nodes are worth in a model, by the time of a horizon."""

    branches: list[list[Array]]  # of each time and level, [branches]; -∞ if not known
    nodes: Array  # [horizon + 1, interfaces]


#: The rules of all steps, the last step first, for so many draws.
Rules = Callable[[int], Sequence[Rule]]


class ModelValue:
    """The value of a policy in a model.

    Parameters
    ----------
    model
        A model; for draws, one with counts.
    by_time
        How often each branch is taken, of each level of decisions, at each time of the horizon.
        A single one is for all times.
    horizon
        The number of steps.
    discount
        Per step.
    """

    def __init__(
        self, model: RSPMN, by_time: Sequence[Sequence[Array]], horizon: int, discount: float
    ) -> None:
        self.model, self.horizon, self.discount = model, horizon, discount
        levels = model.bellman.levels
        # At the END there is one way on.
        self.by_time = [
            [
                np.where(level.branches.marked, 1.0, taken)
                for level, taken in zip(levels, each, strict=True)
            ]
            for each in by_time
        ]

    def rules(self, draws: int) -> list[Rule]:  # noqa: ARG002
        """Return what is done in each step."""
        return self._mixed(self.by_time)

    def drawn_rules(self, rng: np.random.Generator) -> Rules:
        """Return rules in which the policy is drawn, too: it is an estimate from logged steps.

        Noise makes a policy worse, on average, than its mean. That is no error of its value: see
        `recentred`.
        """

        def rules(draws: int) -> list[Rule]:
            # Gamma variables; `Mixed` divides by their sum, which makes them Dirichlet draws.
            drawn = [
                [rng.standard_gamma(taken, (draws, len(taken))) for taken in each]
                for each in self.by_time
            ]
            return self._mixed(drawn)

        return rules

    def _mixed(self, by_time: Sequence[Sequence[Array]]) -> list[Rule]:
        rules: list[Rule] = [Mixed(levels) for levels in by_time]
        return (rules if len(rules) > 1 else rules * self.horizon)[::-1]

    @cached_property
    def worths(self) -> ModelWorths:
        """What everything is worth in the model itself."""
        return worths_of(self.model, self.rules(1), self.discount)

    @property
    def value(self) -> float:
        """The value from the start, in the model itself."""
        return float(np.array(self.model.starts) @ self.worths.nodes[0])


def worths_of(model: RSPMN, rules: Sequence[Rule], discount: float) -> ModelWorths:
    """Return what everything is worth in a model; the rule of the last step comes first."""
    world, values = OwnWorld(model), np.zeros((1, model.num_interfaces))
    branches, nodes = [], [values[0]]
    for after, rule in enumerate(rules):
        kept = FirstDrawKept(rule)
        values = world.update(values, discount, after == 0, kept)
        branches.append(kept.worth)
        nodes.append(values[0])
    return ModelWorths(branches[::-1], np.stack(nodes[::-1]))


def draws_of(
    model: RSPMN,
    policies: Sequence[Rules],
    discount: float,
    draws: int,
    rng: np.random.Generator,
) -> Array:  # [policies, draws]
    """Return what policies are worth from the start, all in the same draws from the posterior."""
    found = []
    for worlds, starts in _worlds(model.source, draws, rng):
        size = len(starts)
        values = [worlds.values(rules(size), discount, size) for rules in policies]
        found.append([(each * starts).sum(axis=1) for each in values])
    return np.concatenate(found, axis=1)


def recentred(drawn: Array, like: Array) -> Array:
    """Return draws with the mean of others.

    A log is worth what it earns, whatever noise is in its shares: a model reproduces that with the
    shares of the log itself. So draws of shares say how sure its value is, but not what it is.
    """
    return np.asarray(drawn - drawn.mean() + like.mean())


class FirstDrawKept:
    """A rule that keeps what branches are worth in the first draw."""

    def __init__(self, rule: Rule) -> None:
        self.rule, self.worth = rule, list[Array]()

    def settle(self, number: int, level: Level, worth: Array) -> Array:
        """Return what the rule says."""
        self.worth.append(worth[0].copy())
        return self.rule.settle(number, level, worth)


class OwnWorld(Worlds):
    """The model itself as the only world."""

    def __init__(self, model: RSPMN) -> None:
        bellman = model.bellman
        forms, shares = bellman.levels[0].forms, np.ones(bellman.size)
        if bellman.unknown is not None:
            shares[bellman.unknown] = 0.0
        known = forms(np.zeros(bellman.size), shares)[1]
        self.bellman = bellman
        self.closed = bellman.levels[0].untried | (known == 0)
        self.earned = forms.earned[None, :]
        self.expect = self._expected
        self._shares = shares

    def _expected(self, after: Array) -> Array:
        values = np.zeros(self.bellman.size)
        values[: self.bellman.interfaces] = after[0]
        self.bellman.spread(values)
        return self.bellman.levels[0].forms(values, self._shares)[0][None, :]


def _worlds(source: Source, draws: int, rng: np.random.Generator) -> Iterator[tuple[Worlds, Array]]:
    """Return draws as worlds, and the start distribution in each, some at a time."""
    draws = source.affordable(draws)
    most = max(1, min(MOST, CHUNK // source.floats))
    for part in np.array_split(np.arange(draws), -(-draws // most)):
        yield source.draw_worlds(len(part), rng)
