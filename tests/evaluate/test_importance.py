"""Off-policy estimators: a toy worked out by hand, all of its logs, and arrays against loops.

The toy has states 0 and 1 and two steps, and starts in 0. Action l stays; it earns 1 in state 0 and
0 in state 1. Action r goes to state 1 with probability 1/2, else it stays; it earns 0 in state 0
and 2 in state 1. The log takes both with probability 1/2, the target l with 1/4 and r with 3/4.

    last step:   v(0) = 1/4 · 1 + 3/4 · 0 = 1/4          v(1) = 1/4 · 0 + 3/4 · 2 = 3/2
    first step:  v(0) = 1/4 · (1 + 1/4) + 3/4 · (0 + (1/4 + 3/2) / 2) = 5/16 + 21/32 = 31/32
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import off_policy_definitions as plain
from off_policy_definitions import END, Move, Step
from rspmn.evaluate.importance import Estimate, Moves, Weighable, marginalised, per_decision
from rspmn.infer.compiled.node_membership import certain
from rspmn.types import Array

TRUTH = 31 / 32
TARGET, EARNS = (
    {"l": 1 / 4, "r": 3 / 4},
    {(0, "l"): 1.0, (0, "r"): 0.0, (1, "l"): 0.0, (1, "r"): 2.0},
)
#: What a wrong model says decisions are worth, by state, action and time.
WRONG = {(s, a, t): s - 2.0 * t + (a == "r") for s in (0, 1) for a in "lr" for t in (0, 1)}


def step(state: int, action: str, t: int) -> Step:
    """Return a logged step; v is the mean of q over the target's actions."""
    v = sum(TARGET[a] * WRONG[state, a, t] for a in "lr")
    return Step(TARGET[action] / 0.5, EARNS[state, action], WRONG[state, action, t], v)


def toy() -> list[tuple[float, list[Step]]]:
    """Return all episodes with their probabilities in the log."""
    found = []
    for first, second in product("lr", "lr"):
        for after, chance in ((0, 1.0),) if first == "l" else ((0, 0.5), (1, 0.5)):
            found.append((chance / 4, [step(0, first, 0), step(after, second, 1)]))
    return found


def weighable(episodes: list[list[Step]], horizon: int, discount: float = 1.0) -> Weighable:
    """Return episodes as arrays, sorted by time."""
    rows = [(t, e, s) for e, steps in enumerate(episodes) for t, s in enumerate(steps[:horizon])]
    rows.sort(key=lambda row: row[:2])
    times = np.array([t for t, _, _ in rows])
    columns = [np.array([getattr(s, n) for _, _, s in rows]) for n in ("ratio", "reward", "q", "v")]
    return Weighable(len(episodes), horizon, discount, np.array([e for _, e, _ in rows]),
                     np.searchsorted(times, np.arange(horizon + 1)), *columns)  # fmt: skip


def test_importance_sampling_by_hand() -> None:
    """Ratios are 1/2 for l and 3/2 for r."""
    by_hand = [
        1 / 2 * 1 + 1 / 4 * 1,  # l, l: earns 1, then 1
        1 / 2 * 1 + 3 / 4 * 0,  # l, r
        3 / 2 * 0 + 3 / 4 * 1,  # r, stays, l
        3 / 2 * 0 + 3 / 4 * 0,  # r, goes, l
        3 / 2 * 0 + 9 / 4 * 0,  # r, stays, r
        3 / 2 * 0 + 9 / 4 * 2,  # r, goes, r
    ]
    episodes = [steps for _, steps in toy()]
    assert [plain.per_decision([e], 2, 1.0) for e in episodes] == by_hand
    fast = [per_decision(weighable([e], 2), False, False).value for e in episodes]
    assert np.allclose(fast, by_hand)
    # l, l and r, goes, r: weights 1/2 and 3/2, then 1/4 and 9/4 of 10/4
    both = [episodes[0], episodes[5]]
    expected = 1 / 4 * 1 + (1 / 10 * 1 + 9 / 10 * 2)
    assert plain.weighted_per_decision(both, 2, 1.0) == pytest.approx(expected)
    found = per_decision(weighable(both, 2), True, False)
    assert found.value == pytest.approx(expected)
    assert found.effective == pytest.approx((1 / 4 + 9 / 4) ** 2 / (1 / 16 + 81 / 16))


@pytest.mark.parametrize("model", [False, True])
def test_unbiased_over_all_logs(model: bool) -> None:
    """The mean over all logs of one, and of two, episodes is the truth, however wrong q is."""
    define = plain.doubly_robust if model else plain.per_decision
    for size in (1, 2):
        total = mean = fast = 0.0
        for log in product(toy(), repeat=size):
            chance = float(np.prod([p for p, _ in log]))
            episodes = [steps for _, steps in log]
            total += chance
            mean += chance * define(episodes, 2, 1.0)
            fast += chance * per_decision(weighable(episodes, 2), False, model).value
        assert total == pytest.approx(1)
        assert mean == pytest.approx(TRUTH)
        assert fast == pytest.approx(TRUTH)


def test_doubly_robust_by_hand() -> None:
    """With the true q, every episode of a toy without chance gives the truth."""
    q = {("l", 1): 1.0, ("r", 1): 0.0}  # the state stays 0
    v1 = 1 / 4 * 1 + 3 / 4 * 0
    q |= {("l", 0): 1 + v1, ("r", 0): v1}
    v0 = 1 / 4 * (1 + v1) + 3 / 4 * v1
    for first, second in product("lr", "lr"):
        episode = [
            Step(TARGET[first] / 0.5, EARNS[0, first], q[first, 0], v0),
            Step(TARGET[second] / 0.5, EARNS[0, second], q[second, 1], v1),
        ]
        assert plain.doubly_robust([episode], 2, 1.0) == pytest.approx(1 / 2)
        assert per_decision(weighable([episode], 2), False, True).value == pytest.approx(1 / 2)


steps = st.builds(
    Step, st.sampled_from([0.0, 0.5, 1.0, 2.5]), *(st.floats(-3, 3) for _ in range(3))
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(steps, min_size=1, max_size=5), min_size=1, max_size=6),
       st.integers(1, 6), st.floats(0.1, 1))  # fmt: skip
def test_arrays_are_the_definitions(
    episodes: list[list[Step]], horizon: int, discount: float
) -> None:
    """Also for episodes of different lengths, and for horizons beyond them."""
    log = weighable(episodes, horizon, discount)
    pairs = {
        (False, False): plain.per_decision, (True, False): plain.weighted_per_decision,
        (False, True): plain.doubly_robust, (True, True): plain.weighted_doubly_robust,
    }  # fmt: skip
    for (normalised, model), define in pairs.items():
        fast = per_decision(log, normalised, model)
        assert fast.value == pytest.approx(define(episodes, horizon, discount), nan_ok=True)
        assert np.isnan(fast.low) or fast.low <= fast.value <= fast.high


def moves(
    rng: np.random.Generator, episodes: int, horizon: int, soft: bool = False
) -> tuple[Moves, Array]:
    """Return random steps of some episodes between three groups, or parts of them."""
    size = episodes * 4
    ratios = rng.choice([0.0, 0.5, 1.0, 2.0], size=(horizon, size), p=[0.1, 0.3, 0.3, 0.3])
    starts, at, to = (
        rng.integers(0, 3, episodes),
        rng.integers(0, 3, size),
        rng.integers(0, 4, size),
    )
    parts = [certain(each, 4) for each in (starts, at, to)]
    if soft:
        weights = rng.dirichlet(np.ones(3), episodes + 2 * size)
        mixed = np.split(np.pad(weights, ((0, 0), (0, 1))), [episodes, episodes + size])
        mixed[2][to == 3] = [0.0, 0.0, 0.0, 1.0]
        parts = [csr_array(each) for each in mixed]
    log = Moves(
        3, parts[0], np.repeat(np.arange(episodes), 4), parts[1], parts[2],
        5.0 * at + rng.normal(size=size), lambda t: ratios[t],
    )  # fmt: skip
    return log, ratios


def by_group(row: Array) -> dict[int, float]:
    """Return the shares of a row; the last is that of the end."""
    return {END if k == len(row) - 1 else k: float(p) for k, p in enumerate(row) if p}


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_marginalised_by_loops(seed: int, soft: bool) -> None:
    log, ratios = moves(np.random.default_rng(seed), 4, 5, soft)
    found, _ = marginalised(log, 5, 0.9)
    starts = by_group(log.starts.toarray().mean(axis=0))
    rows = zip(log.at.toarray(), log.to.toarray(), log.reward.tolist(), strict=True)
    listed = [
        Move(by_group(a), by_group(b), r, ratios[:, k].tolist()) for k, (a, b, r) in enumerate(rows)
    ]
    assert found.value == pytest.approx(plain.marginalised(starts, listed, 5, 0.9))


def test_marginalised_by_hand() -> None:
    """From 0: l, r to 0, r to 1; from 1: l and r; each of the toy's steps once.

    In group 0 the ratios are 1/2, 3/2, 3/2 of 7/2: it earns 1/7 and leads to 1 with 3/7. In group 1
    they are 1/2 and 3/2: it earns 3/2. Two steps are worth 1/7 + (4/7 · 1/7 + 3/7 · 3/2).
    """
    rows = [(0, 0, 1.0, 0.5), (0, 0, 0.0, 1.5), (0, 1, 0.0, 1.5), (1, 1, 0.0, 0.5),
            (1, END, 2.0, 1.5)]  # fmt: skip
    listed = [Move({at: 1.0}, {to: 1.0}, reward, [ratio] * 2) for at, to, reward, ratio in rows]
    expected = 1 / 7 + 4 / 49 + 9 / 14
    assert plain.marginalised({0: 1.0}, listed, 2, 1.0) == pytest.approx(expected)
    at, to = np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 2])
    log = Moves(2, certain(np.array([0]), 3), np.zeros(5, np.int64), certain(at, 3),
                certain(to, 3), np.array([1.0, 0, 0, 0, 2]),
                lambda _: np.array([0.5, 1.5, 1.5, 0.5, 1.5]))  # fmt: skip
    found, lost = marginalised(log, 2, 1.0)
    assert found.value == pytest.approx(expected)
    assert lost == 0
    assert np.isnan(found.low), "one episode has no interval"


def test_a_group_without_a_decision_of_the_target_is_lost() -> None:
    both = certain(np.array([0, 1]), 3)
    log = Moves(2, both, np.array([0, 1]), both, certain(np.array([2, 2]), 3),
                np.array([5.0, 7.0]), lambda _: np.array([1.0, 0.0]))  # fmt: skip
    found, lost = marginalised(log, 1, 1.0)
    assert (found.value, lost) == (5.0, 0.5)
    nothing, lost = marginalised(replace(log, ratios=lambda _: np.zeros(2)), 1, 1.0)
    assert np.isnan(nothing.value)
    assert lost == 1


def spread(estimates: list[Estimate]) -> float:
    """Return the jackknife's standard error, given estimates without one episode each."""
    values = np.array([e.value for e in estimates])
    size = len(values)
    return float(np.sqrt((size - 1) / size * ((values - values.mean()) ** 2).sum()))


@pytest.mark.parametrize("model", [False, True])
@pytest.mark.parametrize("normalised", [False, True])
def test_standard_errors_are_those_of_the_jackknife(normalised: bool, model: bool) -> None:
    rng = np.random.default_rng(0)
    chances, episodes = zip(*toy(), strict=True)
    log = [episodes[k] for k in rng.choice(6, 80, p=chances)]
    found = per_decision(weighable(log, 2), normalised, model)
    without = [
        per_decision(weighable(log[:k] + log[k + 1 :], 2), normalised, model) for k in range(80)
    ]
    error = (found.high - found.value) / 1.644854
    assert error == pytest.approx(spread(without), rel=0.1)


@pytest.mark.parametrize("soft", [False, True])
def test_standard_error_of_marginalised_is_that_of_the_jackknife(soft: bool) -> None:
    log, ratios = moves(np.random.default_rng(1), 60, 3, soft)
    found, _ = marginalised(log, 3, 1.0)

    def leave_out(k: int) -> Moves:
        rows = np.flatnonzero(log.episode != k)
        others = np.flatnonzero(np.arange(60) != k)
        return Moves(
            3, log.starts[others], log.episode[rows] - (log.episode[rows] > k), log.at[rows],
            log.to[rows], log.reward[rows], lambda t: ratios[t][rows],
        )  # fmt: skip

    without = [marginalised(leave_out(k), 3, 1.0)[0] for k in range(60)]
    assert (found.high - found.value) / 1.644854 == pytest.approx(spread(without), rel=0.1)
