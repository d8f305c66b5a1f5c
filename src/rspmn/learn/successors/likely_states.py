"""The states that are likely to follow, given the leaves that predict their components.

Components are independent given the leaves. Each half of them has few combinations of leaves, of
which the outcomes are listed once, the likeliest first. What follows a combination of all leaves
are pairs of an outcome of either half: of each outcome, those that are likely enough together with
it are the first of the other list. How likely is enough depends on two things: what is left out
should have next to no probability in all, and not too many states should be looked at. What was
left out is known.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rspmn.circuit.node_arrays import ranges
from rspmn.data.distinct import distinct_integers, distinct_rows
from rspmn.data.keys import group_weights
from rspmn.learn.successors.priors import Factors
from rspmn.types import Array, Ints

#: States are listed down to the first of these probabilities with which no more than `CUT` of all
#: that follows is left out; or to the last with which no more than about `MOST_PAIRS` pairs of a
#: combination and a state, or an outcome of half of the components, are looked at.
LEAST_CHANCES = (3e-2, 1e-2, 3e-3, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
CUT, MOST_PAIRS = 1e-6, 20_000_000
#: So many are made of a sample at most.
MOST_SAMPLED = 2_000_000
#: Above the logarithm to base 2 of 1 / the last of these probabilities.
DEEPEST = 64
#: About so many combinations are looked at to find out how many states follow.
SAMPLE = 100
#: About so many states that may follow are looked at at once.
CHUNK = 500_000


@dataclass(frozen=True, eq=False)
class LikelyStates:
    """The values that may follow in each leaf, and how likely each is."""

    starts: Ints  # [leaves + 1], the first value of each leaf
    value: Ints  # [values]
    chance: Array  # [values]

    @classmethod
    def of(cls, factors: Factors) -> "LikelyStates":
        """Return the values that factors have in their leaves."""
        node, value, weight = factors.tied.trees.cells
        order, totals = np.argsort(node, kind="stable"), factors.tied.totals
        starts = np.searchsorted(node[order], np.arange(len(totals) + 1))
        return cls(starts, value[order], weight[order] / totals[node[order]])

    def __call__(self, leaves: Ints, weight: Array) -> tuple[Ints, Array]:
        """Return the likely states, sorted, and how often each is expected.

        What all of them lack to the sum of `weight` is left out.

        Parameters
        ----------
        leaves
            Combinations of leaves. [components, combinations]
        weight
            How often each is expected. [combinations]

        Returns
        -------
        tuple
            The values of components, [states, components], and how often, [states].
        """
        least = self._least_chance(leaves)
        halves = self._halves(leaves, least)
        assert halves is not None  # as there is no limit
        one, other = halves
        rows, which = distinct_integers(one.row * (len(other.starts) - 1) + other.row)
        weight = group_weights(which, weight, len(rows))
        of_one, of_other = np.divmod(rows, len(other.starts) - 1)
        width = np.diff(one.starts)[of_one] * np.diff(other.starts)[of_other]
        chunk = np.cumsum(np.minimum(width, 1 / least)) // CHUNK
        keys, often = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
        for part in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(chunk)) + 1):
            pairs = _Pairs.of(one, of_one[part], other, of_other[part], least)
            key, share = pairs.states(weight[part], least)
            found, which = distinct_integers(key)
            keys.append(found)
            often.append(group_weights(which, share, len(found)))
        found, which = distinct_integers(np.concatenate(keys))
        at, after = np.divmod(found, len(other.values))
        values = np.hstack([one.values[at], other.values[after]])
        return values, group_weights(which, np.concatenate(often), len(found))

    def _least_chance(self, leaves: Ints) -> float:
        """Return from which probability on states are listed."""
        count, found = leaves.shape[1], LEAST_CHANCES[0]
        sample = leaves[:, :: max(1, count // SAMPLE)]
        most = min(MOST_PAIRS * sample.shape[1] / count, MOST_SAMPLED)
        for least in LEAST_CHANCES:
            halves = self._halves(sample, least, most)
            if halves is None:
                break
            one, other = halves
            pairs = _Pairs.of(one, one.row, other, other.row, least)
            if len(pairs) > most:
                break
            found = least
            followed = pairs.states(np.ones(len(one.row)), least)[1].sum()
            if followed >= (1 - CUT) * sample.shape[1]:
                break
        return found

    def _halves(
        self, leaves: Ints, least: float, most: float = math.inf
    ) -> "tuple[_Outcomes, _Outcomes] | None":
        """Return what may follow in either half of the components; None if it is more than `most`.

        That is said as soon as it is seen.
        """
        half = (len(leaves) + 1) // 2
        one = self._outcomes(leaves[:half], least, most)
        other = None if one is None else self._outcomes(leaves[half:], least, most)
        return None if one is None or other is None else (one, other)

    def _outcomes(self, leaves: Ints, least: float, most: float) -> "_Outcomes | None":
        """Return what may follow combinations of leaves of some components."""
        rows, row = distinct_rows(leaves.T)
        at, chance = np.arange(len(rows)), np.ones(len(rows))
        values = np.zeros((len(rows), 0), dtype=np.int64)
        for leaf in rows.T:
            node = leaf[at]
            cell, first = ranges(self.starts[node], self.starts[node + 1])
            before = np.repeat(np.arange(len(at)), np.diff(first))
            longer = chance[before] * self.chance[cell]
            kept = longer >= least
            before, chance = before[kept], longer[kept]
            if len(before) > most:
                return None
            at, values = at[before], np.column_stack([values[before], self.value[cell[kept]]])
        order = np.lexsort([-chance, at])
        states, state = distinct_rows(values[order])
        starts = np.searchsorted(at[order], np.arange(len(rows) + 1))
        return _Outcomes(row, starts, chance[order], state, states)


@dataclass(frozen=True, eq=False)
class _Outcomes:
    """What may follow combinations of leaves of some components, the likeliest first."""

    row: Ints  # which of these combinations each combination of all leaves has
    starts: Ints  # [combinations + 1], the first outcome of each
    chance: Array  # [outcomes]
    state: Ints  # [outcomes], the place of its values among `values`
    values: Ints  # [states, components]

    def down_to(self, row: Ints, chance: Array) -> Ints:  # as `row`
        """Return where outcomes of combinations stop that have a chance, or hardly less."""
        found = np.searchsorted(self._depth, row - np.log2(chance) / DEEPEST + 1e-9)
        return np.clip(found, self.starts[row], self.starts[row + 1])

    @cached_property
    def _depth(self) -> Array:  # [outcomes]
        """The combination and how unlikely each outcome is there, as one number that ascends."""
        row = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        return np.asarray(row - np.log2(self.chance) / DEEPEST)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Outcomes of one half, and those of the other that are likely enough together with them."""

    one: _Outcomes
    other: _Outcomes
    row: Ints  # [outcomes], the combination of all leaves
    mine: Ints  # [outcomes], of the one half
    first: Ints  # [outcomes], the outcomes of the other half, from this one
    stop: Ints  # [outcomes], to this one

    @classmethod
    def of(
        cls, one: _Outcomes, of_one: Ints, other: _Outcomes, of_other: Ints, least: float
    ) -> "_Pairs":
        """Return the pairs of combinations, given that of either half."""
        mine, first = ranges(one.starts[of_one], one.starts[of_one + 1])
        row = np.repeat(np.arange(len(of_one)), np.diff(first))
        after = of_other[row]
        stop = other.down_to(after, least / one.chance[mine])
        return cls(one, other, row, mine, other.starts[after], stop)

    def __len__(self) -> int:
        return int((self.stop - self.first).sum())

    def states(self, weight: Array, least: float) -> tuple[Ints, Array]:
        """Return the keys of states, and how often they follow combinations of some weights."""
        theirs, first = ranges(self.first, self.stop)
        counts = np.diff(first)
        joint = np.repeat(self.one.chance[self.mine], counts) * self.other.chance[theirs]
        often = np.repeat(weight[self.row], counts) * joint
        key = np.repeat(self.one.state[self.mine] * len(self.other.values), counts)
        kept = joint >= least
        return (key + self.other.state[theirs])[kept], often[kept]
