"""Of actions that are worth the same, the one that earns sooner: what is promised is earned."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import rspmn
from effort import share_of_examples
from rspmn import Schema
from rspmn.errors import ConvergenceError
from rspmn.infer.actions import best_among
from rspmn.infer.policy import Policy
from rspmn.learn import learn_rspmn
from rspmn.model import OFFERS, RSPMN, Offer
from small_models import Moves, chain


def earned(moves: list[Moves], act: Callable[[int], str]) -> np.ndarray:
    """Return what a stationary policy earns in the end, in 2²⁰ steps, from each state.

    S₂ₙ = Sₙ + Pⁿ Sₙ; the state after the last is END, which earns nothing.
    """
    size = len(moves) + 1
    step, total = np.zeros((size, size)), np.zeros(size)
    step[-1, -1] = 1.0
    for x, branches in enumerate(moves):
        total[x], to = branches[act(x)]
        step[x, list(to)] = list(to.values())
    for _ in range(20):
        total, step = total + step @ total, step @ step
    return total[:-1]


def of(policy: Policy, t: int = 0) -> Callable[[int], str]:
    return lambda x: str(policy.act({"x": x}, t))


def corridor(length: int, chance: float = 1.0, to_end: bool = True) -> list[Moves]:
    """Stay for nothing, or go on, with 1 on leaving the last cell."""
    cells: list[Moves] = []
    for i in range(length):
        go = {i + 1: chance, i: 1 - chance} if chance < 1 else {i + 1: 1.0}
        cells.append({"stay": (0.0, {i: 1.0}), "go": (chance if i == length - 1 else 0.0, go)})
    return cells if to_end else [*cells, {"stay": (0.0, {length: 1.0})}]


@pytest.mark.parametrize("chance", [1.0, 0.5, 0.001])
@pytest.mark.parametrize("to_end", [True, False])
def test_the_corridor(chance: float, to_end: bool) -> None:
    moves = corridor(3, chance, to_end)
    model = chain(moves, end=to_end)
    assert model.meu() == pytest.approx(1.0)
    policy = model.policy()
    assert [policy.act({"x": x}) for x in range(3)] == ["go"] * 3
    assert earned(moves, of(policy))[0] == pytest.approx(1.0)
    assert [a.value for a in model.best_decisions({"x": 0})] == ["go", "stay"]
    if chance == 1.0:
        drawn = model.sample(20, 10, 0, policy)
        assert drawn.columns["u"].data.sum() == 20


def test_with_a_long_horizon_and_the_time_left_out() -> None:
    moves = corridor(3)
    policy = chain(moves, end=True).policy(50)
    assert [policy.act({"x": x}) for x in range(3)] == ["go"] * 3
    assert policy.act({"x": 0}, t=49) == "stay"  # nothing can be earned any more: the first
    assert policy.act_many({"x": [0, 1, 2]}).tolist() == ["go"] * 3
    assert earned(moves, of(policy)).tolist() == [1.0, 1.0, 1.0]


def test_partial_evidence_breaks_ties_alike() -> None:
    """Where the state is not known the network is asked, not the tables."""
    policy = chain(corridor(3, 0.001), end=True).policy()
    assert policy.act({}) == policy.act() == "go"
    stay, go = (a for a in policy.action_values({}) if a.available)
    assert (stay.best, go.best) == (True, True)
    assert go.delay < stay.delay


def test_costs_on_the_way() -> None:
    """To wait is worth 2, as is to pay 1 for each of 300 steps and earn 302 in the end."""
    length = 300
    moves: list[Moves] = [
        {"wait": (0.0, {i: 1.0}), "pay": (-1.0 if i < length - 1 else 301.0, {i + 1: 1.0})}
        for i in range(length)
    ]
    model = chain(moves, end=True)
    assert model.meu() == pytest.approx(2.0)
    assert earned(moves, of(model.policy()))[0] == pytest.approx(2.0)


def test_sooner_is_better_and_costs_are_better_late() -> None:
    """Both ways earn 1 in all; one earns 3 at once and then pays 2, one earns 1 two steps later."""
    moves: list[Moves] = [
        {"late": (0.0, {1: 1.0}), "soon": (3.0, {2: 1.0})},
        {"on": (1.0, {3: 1.0})},
        {"on": (-2.0, {3: 1.0})},
    ]
    model = chain(moves, end=True)
    late, soon = (a for a in model.action_values({"x": 0}, horizon=5) if a.available)
    # Σ t · u: 1 · 1 and 0 · 3 - 1 · 2
    assert (late.delay, soon.delay) == (1.0, -2.0)
    assert (late.utility, soon.utility, late.best, soon.best) == (1.0, 1.0, True, True)
    assert [a.value for a in model.best_decisions({"x": 0}, horizon=5)] == ["soon", "late"]
    assert model.policy().act({"x": 0}) == "soon"


def test_a_limit_that_nobody_earns_is_refused() -> None:
    """Cash in for 1 at the last step; before it, that would cost 1/2 later: wait for ever?"""
    moves: list[Moves] = [
        {"wait": (0.0, {0: 1.0}), "cash": (1.0, {1: 1.0})},
        {"pay": (-0.5, {2: 1.0})},
    ]
    model = chain(moves, end=True)
    assert model.values()[:2] == [1.0, -0.5]  # over any horizon
    assert model.policy(7).act({"x": 0}, t=0) == "wait"
    assert model.policy(7).act({"x": 0}, t=6) == "cash"
    with pytest.raises(ConvergenceError, match="no stationary policy attains"):
        model.policy()
    assert model.policy(discount=0.9).act({"x": 0}) == "cash"  # .55 now, or less later


def random_moves(rng: np.random.Generator, deterministic: bool) -> list[Moves]:
    """Return a world in which to wait is free, moves are free or cost 1, and leaving earns."""
    size = int(rng.integers(2, 8))
    worth = {x: float(rng.integers(0, 4)) for x in range(size)}
    moves: list[Moves] = []
    for x in range(size):
        found: Moves = {"wait": (0.0, {x: 1.0})}
        for k in range(int(rng.integers(1, 4))):
            to = rng.choice(size, 1 if deterministic else int(rng.integers(1, 3)), replace=False)
            chances = rng.choice([0.25, 0.5, 0.75]) if len(to) == 2 else 1.0
            cost = 0.0 if deterministic else float(rng.integers(-1, 1))
            shares = dict(zip(to.tolist(), [chances, 1 - chances], strict=False))
            found[f"go{k}"] = (cost, {int(i): float(p) for i, p in shares.items()})
        if rng.random() < 0.4:
            found["leave"] = (worth[x], {size: 1.0})
        moves.append(found)
    return moves


@given(st.integers(0, 2**32 - 1))
def test_without_a_horizon_what_is_promised_is_earned(seed: int) -> None:
    rng = np.random.default_rng(seed)
    moves = random_moves(rng, deterministic=False)
    model = chain(moves, end=True)
    policy = model.policy()  # it is free to wait, and what is earned is earned once: a limit
    # a tie loses at most 1e-9 of a value below 4 in each of fewer than 1e3 steps
    assert earned(moves, of(policy)) == pytest.approx(model.values()[:-1], abs=1e-5)


@given(st.integers(0, 2**32 - 1))
def test_with_a_horizon_what_is_promised_is_earned(seed: int) -> None:
    """Also if the time is left out: where all is certain, 50 steps are as good as any number."""
    rng = np.random.default_rng(seed)
    moves = random_moves(rng, deterministic=True)
    model = chain(moves, end=True)
    policy = model.policy(50)
    promised = model.values(50)[:-1]
    assert earned(moves, of(policy)) == pytest.approx(promised, abs=1e-9)
    total, states = 0.0, {0: 1.0}
    for t in range(50):
        after: dict[int, float] = {}
        for x, p in states.items():
            if x < len(moves):
                gain, to = moves[x][str(policy.act({"x": x}, t))]
                total += p * gain
                for y, q in to.items():
                    after[y] = after.get(y, 0.0) + p * q
        states = after
    assert total == pytest.approx(promised[0], abs=1e-9)


def recurrent_parts(rng: np.random.Generator) -> RSPMN:
    size = int(rng.integers(2, 6))
    moves: list[Moves] = []
    for _ in range(size):
        found: Moves = {}
        for k in range(2):
            to = rng.choice(size + 1, 2, replace=False).tolist()
            found[f"a{k}"] = (float(rng.integers(-2, 3)), {to[0]: 0.5, to[1]: 0.5})
        moves.append(found)
    return chain(moves, end=True)


@given(st.integers(0, 2**32 - 1))
def test_with_any_rewards_it_is_earned_or_nobody_can(seed: int) -> None:
    model = recurrent_parts(np.random.default_rng(seed))
    try:
        values = model.values()[:-1]
    except ConvergenceError:
        assume(False)
    moves = moves_of(model)
    try:
        policy = model.policy()
    except ConvergenceError:
        for actions in product(*moves):
            lacks = np.array(values) - earned(moves, actions.__getitem__)
            assert lacks.max() > 1e-3, actions
    else:
        assert earned(moves, of(policy)) == pytest.approx(values, abs=1e-4)


@pytest.mark.parametrize("seed", [1000572, 1000776])
def test_some_limits_are_earned_by_nobody(seed: int) -> None:
    test_with_any_rewards_it_is_earned_or_nobody_can.hypothesis.inner_test(seed)  # type: ignore[attr-defined]
    with pytest.raises(ConvergenceError):
        recurrent_parts(np.random.default_rng(seed)).policy()


def moves_of(model: RSPMN) -> list[Moves]:
    """Read a chain back from its template."""
    nodes = model.template.nodes
    found: list[Moves] = []
    for root in model.template.roots[:-1]:
        decide = nodes[nodes[root].children[1]]
        branches: Moves = {}
        for value, child in zip(decide.values, decide.children, strict=True):  # type: ignore[union-attr]
            utility, leads = (nodes[i] for i in nodes[child].children)
            to = [nodes[i].interface for i in leads.children]  # type: ignore[union-attr]
            branches[value] = (utility.mean, dict(zip(to, leads.weights, strict=True)))  # type: ignore[union-attr]
        found.append(branches)
    return found


def test_delays_are_computed_only_where_actions_tie() -> None:
    moves: list[Moves] = [
        {"a": (1.0, {1: 1.0}), "b": (0.0, {1: 1.0})},
        {"a": (1.0, {0: 1.0}), "b": (1.0, {0: 1.0})},
    ]
    policy = chain(moves).policy(50)
    assert policy.act({"x": 0}) == "a"
    assert "_settled" not in policy.planned.__dict__
    assert policy.act({"x": 1}) == "a"
    assert "_settled" in policy.planned.__dict__


def random_log(rng: np.random.Generator) -> dict[str, list[Any]]:
    """Return a short log of few states, in which rewards are small integers: many actions tie."""
    log: dict[str, list[Any]] = {name: [] for name in ("episode", "time", "x", "y", "a", "u")}
    for episode in range(int(rng.integers(4, 30))):
        for time in range(int(rng.integers(1, 5))):
            row = (episode, time, *rng.integers(0, 3, 2).tolist(), "dbca"[rng.integers(4)],
                   float(rng.integers(0, 2)))  # fmt: skip
            for name, value in zip(log, row, strict=True):
                log[name].append(value)
    return log


@share_of_examples(0.25)
@given(st.integers(0, 2**32 - 1), st.sampled_from(OFFERS))
def test_all_ways_to_ask_choose_the_same(seed: int, offer: Offer) -> None:
    """Nodes list actions in different orders: those tried first, then those that never were."""
    log = random_log(np.random.default_rng(seed))
    schema = Schema([["x", "y"], ["a"]], ["a"], "u")
    model, _ = learn_rspmn(rspmn.windows(log, schema, ending="end"))
    policy = model.policy(3, offer=offer, otherwise="none")
    states = [{"x": x, "y": y} for x in (None, 0, 1, 2) for y in (None, 0, 1, 2)]
    columns = {name: [state[name] for state in states] for name in "xy"}
    for t in (0, 2):
        chosen = policy.act_many(columns, t).tolist()
        assert chosen == [policy.act(state, t) for state in states]
        best = [best_among(policy.action_values(state, t)) for state in states]
        assert chosen == [found[0].value if found else "none" for found in best]
