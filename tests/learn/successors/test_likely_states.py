"""Likely states by halves are those of all products of values."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import share_of_examples
from rspmn.learn.successors import likely_states
from rspmn.learn.successors.likely_states import CUT, LEAST_CHANCES, LikelyStates

Outcome = tuple[tuple[int, ...], float]  # values, and how likely they are


@share_of_examples(0.4)
@given(st.integers(0, 2**32 - 1))
def test_as_all_products_of_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    components, rows, leaves = int(rng.integers(1, 7)), int(rng.integers(1, 30)), 8
    sizes = rng.integers(1, 5, leaves)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    value = np.concatenate([rng.permutation(5)[:size] for size in sizes])
    chance = np.concatenate([rng.dirichlet(np.full(size, 0.3)) for size in sizes])
    combinations = rng.integers(0, leaves, (components, rows))
    weight = rng.random(rows)
    most = int(rng.choice([1, 20, 100, 10**6]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(likely_states, "CHUNK", int(rng.choice([10, 500_000])))
        patch.setattr(likely_states, "MOST_PAIRS", most)
        values, often = LikelyStates(starts, value, chance)(combinations, weight)
    found = dict(zip(map(tuple, values.tolist()), often.tolist(), strict=True))

    def outcomes(
        columns: list[list[int]], least: float
    ) -> list[list[tuple[tuple[int, ...], float]]]:
        """Return the values that may follow each combination of leaves, and how likely they are."""
        return [
            [
                (tuple(value[list(cells)].tolist()), joint)
                for cells in product(*(range(starts[leaf], starts[leaf + 1]) for leaf in column))
                if (joint := math.prod(chance[list(cells)].tolist())) >= least
            ]
            for column in columns
        ]

    def looked_at(least: float) -> int:
        half = (components + 1) // 2
        halves = [np.unique(part.T, axis=0).tolist() for part in np.split(combinations, [half])]
        parts = [combinations.T.tolist(), *halves]
        return max(sum(map(len, outcomes(columns, least))) for columns in parts)

    fits = []
    for least in LEAST_CHANCES:
        wanted: dict[tuple[int, ...], float] = {}
        all_of_them = outcomes(combinations.T.tolist(), least)
        for share, likely in zip(weight.tolist(), all_of_them, strict=True):
            for state, joint in likely:
                wanted[state] = wanted.get(state, 0.0) + share * joint
        covered = sum(joint for likely in all_of_them for _, joint in likely) >= (1 - CUT) * rows
        if sorted(wanted) == [*found] and found == pytest.approx(wanted):
            fits.append((least, covered))
    deeper = dict(pairwise(LEAST_CHANCES))
    assert any(
        covered or least not in deeper or looked_at(deeper[least]) > most for least, covered in fits
    )
    assert all(looked_at(least) <= most for least, _ in fits[:1]) or fits[0][0] == LEAST_CHANCES[0]
