"""Likely states by halves are those of all products of values."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import share_of_examples
from rspmn.learn.successors import likely_states
from rspmn.learn.successors.likely_states import LEAST_CHANCES, LikelyStates


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
    for least in LEAST_CHANCES:
        pairs, wanted = 0, dict[tuple[int, ...], float]()
        for column, share in zip(combinations.T.tolist(), weight.tolist(), strict=True):
            for cells in product(*(range(starts[leaf], starts[leaf + 1]) for leaf in column)):
                joint = math.prod(chance[list(cells)].tolist())
                if joint >= least:
                    state, pairs = tuple(value[list(cells)].tolist()), pairs + 1
                    wanted[state] = wanted.get(state, 0.0) + share * joint
        if pairs <= most:
            break
    found = dict(zip(map(tuple, values.tolist()), often.tolist(), strict=True))
    assert [*found] == sorted(wanted)
    assert found == pytest.approx(wanted)
