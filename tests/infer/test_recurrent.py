"""Horizons, discounts and convergence of recurrent networks, against exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from random_models import random_rspmn, random_setting
from rspmn.circuit import Categorical, NetworkBuilder, Utility
from rspmn.end_nodes import end_root, weighted_top
from rspmn.envs.paper_grid import CELLS, paper_grid
from rspmn.errors import ConvergenceError, EvidenceError
from rspmn.infer.compiled.finite_horizon import Update
from rspmn.infer.compiled.infinite_horizon import MOST_UPDATES
from rspmn.model import RSPMN
from rspmn.types import Array
from small_models import SCHEMA, Moves, chain


def two_states() -> RSPMN:
    """Two states, two actions, in quarters.

    In 0, wait earns 1 and stays; go earns -1/2 and leads to 1 with probability 3/4.
    In 1, wait earns 3 and falls back to 0 with probability 1/4; go earns 4 and does so surely.
    """
    b = NetworkBuilder()

    def leads(utility: float, to_one: float) -> int:
        return b.product(
            [b.utility("u", utility), b.sum([b.latent(0), b.latent(1)], [1 - to_one, to_one])]
        )

    roots = [
        b.product([b.leaf("x", Categorical.certain(x)), b.max("a", branches)])
        for x, branches in enumerate(
            [
                {"wait": leads(1, 0), "go": leads(-0.5, 0.75)},
                {"wait": leads(3, 0.75), "go": leads(4, 0)},
            ]
        )
    ]
    return RSPMN(SCHEMA, weighted_top([0.5, 0.5]), b.build(*roots), visits=(30.0, 10.0))


def bellman(v: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    q = Fraction(1, 4)
    return (
        max(1 + v[0], Fraction(-1, 2) + q * v[0] + 3 * q * v[1]),
        max(3 + q * v[0] + 3 * q * v[1], 4 + v[0]),
    )


def test_two_states_by_hand() -> None:
    model = two_states()
    # one step: max(1, -1/2) and max(3, 4)
    assert model.values(1) == [1.0, 4.0]
    # two: max(1 + 1, -1/2 + 1/4 + 3) = 2.75 and max(3 + 1/4 + 3, 4 + 1) = 6.25
    assert model.values(2) == [2.75, 6.25]
    # first wait for the last reward of 4, but with two steps to go stay
    assert [a.value for a in model.best_decisions({"x": 1}, 1)] == ["go"]
    assert [a.value for a in model.best_decisions({"x": 1}, 2)] == ["wait"]
    assert model.meu(horizon=2) == 4.5  # half of each
    # three visits to 0 for one to 1; old versions of numpy round a logarithm otherwise
    assert model.meu({}, horizon=2) == pytest.approx(3.625, rel=1e-15)
    wait, go = model.action_values({"x": 0}, 2)
    assert (wait.utility, go.utility) == (2.0, 2.75)


@pytest.mark.parametrize("horizon", [1, 3, 10, 40])
def test_exact_fractions(horizon: int) -> None:
    exact = (Fraction(0), Fraction(0))
    for _ in range(horizon):
        exact = bellman(exact)
    # 40 steps of additions below 200: 40 · 200 · 2⁻⁵³ < 1e-12
    assert two_states().values(horizon) == pytest.approx([float(v) for v in exact], abs=1e-12)


def test_discounted_values_converge_within_their_bound() -> None:
    model = two_states()
    # In the limit with discount 1/2: v1 = 3 + (v0 + 3 v1)/8 and v0 = -1/2 + (v0 + 3 v1)/8,
    # so v1 - v0 = 7/2, v0/2 = -1/2 + 21/16, v0 = 13/8, v1 = 41/8; go in 1 gives
    # 4 + 13/16 = 4.8125 < 5.125, wait in 0 gives 1 + 13/16 = 1.8125 > 1.625. So wait in 0:
    # v0 = 2; then v1 = 3 + 2/8 + 3 v1/8 = 5.2, and go in 1 gives 4 + 1 = 5 < 5.2;
    # go in 0 gives -1/2 + 1/4 + 1.95 = 1.7 < 2.
    for x, exact in enumerate([2.0, 5.2]):
        answer = model.meu({"x": x}, discount=0.5)
        assert 0 < answer.bound < 1e-13
        assert abs(answer - exact) <= answer.bound
    assert model.meu({"x": 0}, discount=0.0) == 1.0


def ending(reward: float, stay: float) -> RSPMN:
    """Earn a reward at every step until the episode ends, which it does with 1 - stay."""
    b = NetworkBuilder()
    follows = b.sum([b.latent(0), b.latent(1)], [stay, 1 - stay])
    act = b.max("a", {"on": b.product([b.utility("u", reward), follows])})
    root = b.product([b.leaf("x", Categorical.certain("alive")), act])
    template = b.build(root, end_root(b, SCHEMA, 1))
    return RSPMN(SCHEMA, weighted_top([1.0, 0.0]), template)


@pytest.mark.parametrize("stay", [0.0, 0.5, 0.9, 0.9999, 0.9999999])
def test_without_discount_values_converge_if_episodes_end(stay: float) -> None:
    model = ending(2.0, stay)
    answer = model.meu()
    exact = Fraction(2) / (1 - Fraction(stay))  # 2 + 2·stay + 2·stay² + …
    assert abs(Fraction(float(answer)) - exact) <= answer.bound
    assert answer.bound <= 1e-7 * exact
    # with a horizon: 2 · (1 - stay^h)/(1 - stay)
    assert model.meu(horizon=7) == pytest.approx(2 * sum(stay**t for t in range(7)), rel=1e-12)
    assert model.end == 1
    assert model.values(3)[1] == 0.0


def test_a_discount_close_to_1() -> None:
    model = chain([{"on": (1.0, {0: 1.0})}])
    answer = model.meu(discount=0.99999)
    assert abs(answer - 1e5) <= answer.bound <= 1e-4
    # and small values are as precise as large ones
    tiny = chain([{"on": (1e-11, {0: 1.0})}]).meu(discount=0.9)
    assert tiny == pytest.approx(1e-10, rel=1e-12)


def test_a_slow_walk_has_a_limit() -> None:
    """Ten cells, advanced with probability .01 at a cost of 1 per step: 1000 steps on average."""
    cells = [{"on": (-1.0, {i: 0.99, i + 1: 0.01})} for i in range(10)]
    answer = chain(cells, end=True).meu()
    assert answer == pytest.approx(-1000, rel=1e-9)
    assert abs(answer + 1000) <= answer.bound


def test_a_random_walk_has_a_limit() -> None:
    """From the wall of n cells, free at the far end: n² + n steps of a fair walk that bounces."""
    n = 30
    cells = [{"on": (-1.0, {max(i - 1, 0): 0.5, i + 1: 0.5})} for i in range(n)]
    answer = chain(cells, end=True).meu()
    assert answer == pytest.approx(-(n * n + n), rel=1e-9)


def test_a_long_corridor_with_a_reward_at_its_end() -> None:
    """Stand still for nothing, or walk 300 cells for 1: the limit looks as far as it must."""
    n = 300
    cells = [
        {"stay": (0.0, {i: 1.0}), "on": (1.0 if i == n - 1 else 0.0, {i + 1: 1.0})}
        for i in range(n)
    ]
    model = chain(cells, end=True)
    assert model.meu() == 1.0
    assert model.meu(horizon=n - 1) == 0.0
    walk = chain([{"on": (1.0, {i + 1: 1.0})} for i in range(n)], end=True)
    assert walk.meu() == 300.0  # changes by 1 per step until the end is felt, then never again


def test_parts_that_are_never_left_may_settle_too() -> None:
    # +1 and -1 by a fair coin: 0 on average. From the first, 1 + v1/2 + v0/2 with v0 + v1 = 0.
    fair = chain([{"on": (1.0, {0: 0.5, 1: 0.5})}, {"on": (-1.0, {0: 0.5, 1: 0.5})}])
    assert fair.values() == pytest.approx([1.0, -1.0])
    assert fair.values(50) == pytest.approx([1.0, -1.0])
    # A part that earns nothing, entered at a price or at a gain: the values as they are entered.
    both = chain(
        [
            {"left": (3.0, {1: 1.0}), "right": (-2.0, {2: 1.0})},
            {"on": (0.0, {1: 1.0})},
            {"on": (0.0, {1: 0.5, 2: 0.5})},
        ]
    )
    assert both.values() == pytest.approx([3.0, 0.0, 0.0])


@pytest.mark.parametrize("leaves", [1e-6, 1e-9])
def test_values_that_grow_slowly_are_not_waited_for(leaves: float) -> None:
    """To wait is worth 5 in the end, but exceeds the safe 1 only after 0.2 / leaves steps."""
    model = chain(
        [
            {"safe": (1.0, {2: 1.0}), "risk": (0.0, {1: 1.0})},
            {"wait": (5 * leaves, {1: 1 - leaves, 2: leaves})},
        ],
        end=True,
    )
    found = model.meu({"x": 0})
    assert abs(found - 5) <= found.bound <= 1e-14 / leaves  # 1/leaves steps, rounding in each
    assert model.policy().act({"x": 0}) == "risk"


def test_without_discount_updates_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs grow for a million steps until another choice is better: so long is not waited."""
    updates = 0

    def counted(update: Update, values: Array) -> Array:
        nonlocal updates
        updates += 1
        return update(values)

    monkeypatch.setattr(Update, "of_finite", counted)
    slow: list[Moves] = [
        {"safe": (-0.5, {2: 1.0}), "risk": (0.0, {1: 1.0})},
        {"wait": (-1e-6, {1: 1 - 1e-6, 2: 1e-6})},
    ]
    with pytest.raises(ConvergenceError, match="the values did not converge within 8176 steps"):
        chain(slow, end=True).values()
    assert 4000 < updates <= MOST_UPDATES
    rare = chain([{"wait": (1.0, {0: 1.0, 1: 1e-300})}], end=True)
    with pytest.raises(ConvergenceError, match="too small to be added"):
        rare.values()


def test_without_discount_values_may_have_no_limit() -> None:
    with pytest.raises(ConvergenceError, match="change by 9 per step.* give a horizon"):
        paper_grid().meu()
    circle = chain([{"on": (1.0, {1: 1.0})}, {"on": (-1.0, {0: 1.0})}])  # bounded, never settled
    with pytest.raises(ConvergenceError, match="values oscillate"):
        circle.meu()
    # but there is a way out that is worth more than staying: then there is a limit
    way_out = chain([{"pay": (-1.0, {0: 1.0}), "leave": (-5.0, {1: 1.0})}], end=True)
    assert way_out.meu() == -5.0
    assert way_out.meu(horizon=3) == -3.0


@given(st.integers(0, 2**32 - 1), st.floats(0, 0.99), st.booleans())
def test_the_limit_is_where_many_updates_lead(seed: int, discount: float, end: bool) -> None:
    rng = np.random.default_rng(seed)
    model = random_rspmn(rng, random_setting(rng, 1), 3, told_apart=False, end=end)
    values = model.values(discount=discount)
    # after h updates the distance is at most discount^h · max|u| / (1 - discount)
    horizon = 1 if discount == 0 else min(1500, math.ceil(math.log(1e-9) / math.log(discount)))
    largest = max(abs(n.mean) for n in model.template.nodes if isinstance(n, Utility))
    far = discount**horizon * largest / (1 - discount) + 1e-9
    assert values == pytest.approx(model.values(horizon, discount), abs=far)


def test_the_start_and_a_state_are_weighed_differently() -> None:
    b = NetworkBuilder()
    roots = [
        b.product(
            [
                b.leaf("x", Categorical(("here", "there"), (0.5, 0.5))),
                b.max("a", {"on": b.product([b.utility("u", u), b.latent(0)])}),
            ]
        )
        for u in (0.0, 1.0)
    ]
    model = RSPMN(SCHEMA, weighted_top([1.0, 0.0]), b.build(*roots), visits=(1.0, 3.0))
    assert model.meu(horizon=1) == 0.0  # an episode starts in the first
    # but three visits in four are the second
    assert model.meu({"x": "here"}, horizon=1) == pytest.approx(0.75, rel=1e-15)


def test_the_paper_grid() -> None:
    """MEU from (0,0) over T = 4 steps, by hand.

    A step earns the reward of its own cell less 1: -1 in (0,0) and (0,1), -11 in (1,0), 9 in
    (1,1). Down then right: -1 in (0,0), -1 in (0,1), 9 in (1,1), 9 in (1,1) again: 16. Through
    (1,0): -1 - 11 + 9 + 9 = 6. Staying a step in (0,0): -1 - 1 - 1 + 9 = 6.
    """
    model = paper_grid()
    assert model.num_interfaces == 4
    start = {"x": 0, "y": 0}
    assert model.meu(start, horizon=4) == 16.0
    assert model.meu(horizon=4) == 16.0
    worth = {a.value: a.utility for a in model.action_values(start, horizon=4)}
    assert worth == {"up": 6.0, "down": 16.0, "left": 6.0, "right": 6.0, "noop": 6.0}
    # The policy avoids (1,0), at every horizon and from every cell that is not it.
    for horizon in range(2, 12):
        for x, y in CELLS:
            best = {a.value for a in model.best_decisions({"x": x, "y": y}, horizon)}
            if (x, y) == (0, 0):
                assert "right" not in best
            if (x, y) == (1, 1):
                assert "up" not in best
            if horizon > 2 and (x, y) == (0, 0):
                assert best == {"down"}
    # Sooner or later everybody sits in the goal: with T steps to go, 9 each but for the way.
    assert model.values(100) == [2 * -1 + 98 * 9, -1 + 99 * 9, -11 + 99 * 9, 900]


def test_queries_are_checked() -> None:
    model = paper_grid()
    with pytest.raises(EvidenceError, match="horizon: expected 1 or more steps, found 0"):
        model.meu(horizon=0)
    with pytest.raises(EvidenceError, match="horizon: expected 0 or more steps, found -1"):
        model.values(-1)
    with pytest.raises(EvidenceError, match="discount: expected a number from 0 to 1, found 1.5"):
        model.meu(horizon=1, discount=1.5)
    with pytest.raises(EvidenceError, match="unknown variable 'z'"):
        model.meu({"z": 1}, horizon=1)
    with pytest.raises(EvidenceError, match="horizon: expected 1 or more steps, found 3.0"):
        model.meu(horizon=3.0)  # type: ignore[arg-type]
    with pytest.raises(EvidenceError, match="expected values by variable, as in .* found int"):
        model.meu(3, horizon=1)
    never = model.meu({"x": 7, "y": 7}, horizon=3)
    assert math.isnan(never)
    assert not never.supported
    assert model.best_decisions({"x": 7}, horizon=3) == []
