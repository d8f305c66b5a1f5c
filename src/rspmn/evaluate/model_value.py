"""What a target is worth in the model: its max nodes as sums, with the target's probabilities.

The model is evaluated exactly, and in draws from the posterior of all its weights. A max node is
shared by all states of its interface node. What the target does there is averaged over these
states, by how often the log visits each and how far it belongs to the node: in the model they
behave alike; see `rspmn.evaluate.paths`. Of a soft box, it is what the target does at its knot.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rspmn.infer.compiled.linear_forms import Level
from rspmn.model import RSPMN
from rspmn.trust.drawn_worlds import OwnWorld, Source, Worlds
from rspmn.trust.rules import Mixed, Rule
from rspmn.types import Array

#: At most this many floats are held per chunk of draws, and so many draws.
CHUNK, MOST = 10_000_000, 100


@dataclass(frozen=True, eq=False)
class ModelWorths:
    """What branches and interface nodes are worth in a model, by the time of a horizon."""

    branches: list[list[Array]]  # of each time and level, [branches]; -∞ if not known
    nodes: Array  # [horizon + 1, interfaces]


#: The rules of all steps, the last step first, for so many draws.
Rules = Callable[[int], Iterable[Rule]]


class ModelValue:
    """The value of a policy in a model.

    `model`: a model; for draws, one with counts. `by_time`: how often each branch is taken, of each
    level of decisions, at each time of the horizon. A single one is for all times. `horizon`: the
    number of steps. `discount`: per step. `last`: the same in the last step, where it differs.
    """

    def __init__(
        self,
        model: RSPMN,
        by_time: Sequence[Sequence[Array]],
        horizon: int,
        discount: float,
        last: Sequence[Array] | None = None,
    ) -> None:
        self.model, self.horizon, self.discount = model, horizon, discount
        self.by_time = [with_end(model, each) for each in by_time]
        self.last = self.by_time[-1] if last is None else with_end(model, last)

    def rules(self, draws: int) -> list[Rule]:  # noqa: ARG002
        """Return what is done in each step."""
        return self._mixed(self.by_time, self.last)

    def drawn_rules(self, rng: np.random.Generator) -> Rules:
        """Return rules in which the policy is drawn, too: it is an estimate from logged steps.

        Noise makes a policy worse, on average, than its mean. That is no error of its value: see
        `recentred`.
        """

        def rules(draws: int) -> list[Rule]:
            # Gamma variables; `Mixed` divides by their sum, which makes them Dirichlet draws. To
            # add 0 makes -0, which they refuse, 0.
            *drawn, last = [
                [rng.standard_gamma(taken + 0.0, (draws, len(taken))) for taken in each]
                for each in (*self.by_time, self.last)
            ]
            return self._mixed(drawn, last)

        return rules

    def _mixed(self, by_time: Sequence[Sequence[Array]], last: Sequence[Array]) -> list[Rule]:
        rules: list[Rule] = [Mixed(levels) for levels in by_time]
        rules = rules if len(rules) > 1 else rules * self.horizon
        return [Mixed(last), *rules[-2::-1]]

    @cached_property
    def worths(self) -> ModelWorths:
        """What everything is worth in the model itself."""
        return worths_of(self.model, self.rules(1), self.discount)

    @property
    def value(self) -> float:
        """The value from the start, in the model itself."""
        return float(np.array(self.model.starts) @ self.worths.nodes[0])


def with_end(model: RSPMN, taken: Sequence[Array]) -> list[Array]:
    """Return how often branches are taken; at the END there is one way on."""
    return [
        np.where(level.branches.marked, 1.0, each)
        for level, each in zip(model.bellman.levels, taken, strict=True)
    ]


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


def recentred(drawn: Array, mean: float) -> Array:
    """Return draws with another mean.

    A log is worth what it earns, whatever noise is in its shares: a model reproduces that with the
    shares of the log itself. So draws say how sure its value is, but not what it is.
    """
    return np.asarray(drawn - drawn.mean() + mean)


class FirstDrawKept:
    """A rule that keeps what branches are worth in the first draw."""

    def __init__(self, rule: Rule) -> None:
        self.rule, self.worth = rule, list[Array]()

    def settle(self, number: int, level: Level, worth: Array) -> Array:
        """Return what the rule says."""
        self.worth.append(worth[0].copy())
        return self.rule.settle(number, level, worth)


def _worlds(source: Source, draws: int, rng: np.random.Generator) -> Iterator[tuple[Worlds, Array]]:
    """Return draws as worlds, and the start distribution in each, some at a time."""
    draws = source.affordable(draws)
    most = max(1, min(MOST, CHUNK // source.floats))
    for part in np.array_split(np.arange(draws), -(-draws // most)):
        yield source.draw_worlds(len(part), rng)
