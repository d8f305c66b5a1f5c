"""What is not known of an answer: the value over the rest, with its share."""

import math

import numpy as np
import pytest

from effort import seeds
from plain_queries import meu_of_network, settled
from random_models import simplex
from rspmn.circuit import Categorical, NetworkBuilder, Sum
from rspmn.data.episodes import Episodes, Followed
from rspmn.end_nodes import end_root, marked_root, unknown_root, weighted_top
from rspmn.infer.bellman import Future, update
from rspmn.infer.criterion import LEAST_KNOWN
from rspmn.infer.evaluation import evaluate
from rspmn.infer.meu import ExpectedUtility, show_share
from rspmn.learn import learn_rspmn
from rspmn.model import RSPMN
from rspmn.schema import Schema
from rspmn.values import UNKNOWN as MARK
from small_models import SCHEMA

A, B, F, END, UNKNOWN = range(5)


def two_states(cut: float, starts: tuple[float, float] = (200 / 201, 1 / 201)) -> RSPMN:
    """Two states, two actions, and F, in which nothing was ever done.

    A: "go" earns 1 and leads to B, but with probability `cut` the log does not say where to;
       "stay" earns 0 and leads to A.
    B: "go" earns 10 and ends; "stay" earns 2 and leads to F.
    Episodes start in A or F.
    """
    b = NetworkBuilder()

    def leads(earns: float, to: dict[int, float]) -> int:
        latents = [b.latent(i) for i in to]
        return b.product([b.utility("u", earns, 10.0), b.sum(latents, list(to.values()))])

    go_on = {B: 1 - cut, UNKNOWN: cut} if cut else {B: 1.0}
    moves = [
        {"go": leads(1.0, go_on), "stay": leads(0.0, {A: 1.0})},
        {"go": leads(10.0, {END: 1.0}), "stay": leads(2.0, {F: 1.0})},
    ]
    states = [b.leaf("x", Categorical.certain(x)) for x in "ABF"]
    roots = [b.product([states[i], b.max("a", move)]) for i, move in enumerate(moves)]
    roots.append(marked_root(b, SCHEMA, [states[2]], MARK, F))
    roots += [end_root(b, SCHEMA, END), unknown_root(b, SCHEMA, UNKNOWN)]
    top = weighted_top([starts[0], 0.0, starts[1], 0.0, 0.0])
    return RSPMN(SCHEMA, top, b.build(*roots), (30.0, 10.0, 2.0, 0.0, 0.0))


def test_where_nothing_leads_anywhere_known() -> None:
    """All that was logged is a step: with more steps to go nothing is known, however many."""
    b = NetworkBuilder()
    outcome = b.product([b.utility("u", 1.0, 10.0), b.sum([b.latent(1)], [1.0])])
    state = b.product([b.leaf("x", Categorical.certain("A")), b.max("a", {"go": outcome})])
    template = b.build(state, unknown_root(b, SCHEMA, 1))
    model = RSPMN(SCHEMA, weighted_top([1.0, 0.0]), template, (10.0, 0.0))
    assert model.values(1)[0] == 1.0
    for horizon in (2, 3, 4):
        assert np.isnan(model.values(horizon)).all()
        assert np.isnan(model.meu(horizon=horizon))
        assert np.isnan(model.action_values({"x": "A"}, horizon)[0].utility)


def test_parts_of_which_nothing_is_known_stay_apart() -> None:
    """One part in two earns 4; the other is made of two in which nothing was ever decided."""
    b = NetworkBuilder()
    unknown = [b.max("a", {MARK: b.utility("u", earns)}) for earns in (0.0, 1.0)]
    known = b.max("a", {"go": b.utility("u", 4.0, 10.0)})
    network = b.build(b.sum([b.sum(unknown, [0.5, 0.5]), known], [0.5, 0.5]))
    found = evaluate(network, {})
    assert (found[-1].utility, found[-1].known) == (4.0, 0.5)
    inner = next(e for e, node in zip(found, network.nodes, strict=True) if isinstance(node, Sum))
    assert (inner.utility, inner.known) == (-math.inf, 0.0)


def answers(model: RSPMN, state: str, horizon: int) -> dict[object, tuple[float, float, bool]]:
    found = model.action_values({"x": state}, horizon)
    return {a.value: (round(a.utility, 9), round(a.supported, 9), a.best) for a in found}


def test_two_states_by_hand() -> None:
    """With one step to go A is worth 1, B 10; F as little as anything, which is END's 0."""
    model = two_states(cut=0.04)
    assert model.values(1) == [1.0, 10.0, 0.0, 0.0, pytest.approx(math.nan, nan_ok=True)]
    # two to go, in A: go is 1 + (.96 · 10) / .96 = 11, and .96 of it is known, at least .95 of
    # what is known of stay, 0 + 1
    assert answers(model, "A", 2) == {
        "go": (11.0, 0.96, True),
        "stay": (1.0, 1.0, False),
    }
    # in B: go is 10 + 0; stay 2 + 0, a guess about F, so that nothing of it is supported
    assert answers(model, "B", 2) == {"go": (10.0, 1.0, True), "stay": (2.0, 0.0, False)}
    # three to go, in A: go is 1 + 10, then END; stay is 0 + 11, of which .96 is supported
    assert answers(model, "A", 3) == {
        "go": (11.0, 0.96, True),
        "stay": (11.0, 0.96, True),
    }
    assert model.policy(3).act({"x": "A"}) == "go"  # it earns sooner


def test_who_is_known_too_little_does_not_compete() -> None:
    """A fifth of go is not known: 1 + (.8 · 10) / .8 is still 11, but only .8 of it is known."""
    model = two_states(cut=0.2)
    assert answers(model, "A", 2) == {
        "go": (11.0, 0.8, False),
        "stay": (1.0, 1.0, True),
    }
    assert model.values(2)[A] == 1.0
    # in the last step it does not matter what follows
    assert answers(model, "A", 1) == {"go": (1.0, 1.0, True), "stay": (0.0, 1.0, False)}
    assert LEAST_KNOWN == 0.95


def test_the_value_over_what_is_supported() -> None:
    model = two_states(cut=0.0)
    # from the start: in A, 1 + 10; in F, once in 201 episodes, nothing is known
    found = model.meu(horizon=2)
    assert found == pytest.approx(11.0)
    assert found.supported == pytest.approx(200 / 201)
    assert repr(found) == "11.0 (supported 0.995, from 10 logged steps)"
    assert model.policy(2).value() == pytest.approx(11.0)
    assert model.policy(2).value().supported == pytest.approx(200 / 201)
    go, stay = model.action_values(None, 2)
    assert (go.utility, go.supported) == pytest.approx((11, 200 / 201))
    assert go.best
    assert (stay.utility, stay.best) == (1.0, False)
    assert model.act(None, 2) == "go"
    # not knowing the state: A three times as often as B; F twice in 42
    found = model.meu({}, 1)
    assert found == pytest.approx((30 * 1 + 10 * 10) / 40)
    assert found.supported == pytest.approx(40 / 42)
    nothing = model.meu({"x": "F"}, 2)
    assert math.isnan(nothing)
    assert (nothing.supported, bool(nothing.supported)) == (0.0, False)
    assert repr(nothing) == "nan (unsupported)"


def test_with_a_discount_and_without_a_horizon() -> None:
    """Discount .9 is an episode that goes on with probability .9: support is counted until then."""
    model = two_states(cut=0.04)
    assert model.meu({"x": "A"}, discount=0.9) == pytest.approx(1 + 0.9 * 10)
    found = {a.value: a for a in model.action_values({"x": "B"}, discount=0.9)}
    # stay: 2 + .9 · V(F), F as bad as END; it is over before F with probability .1
    assert found["stay"].utility == pytest.approx(2.0)
    assert found["stay"].supported == pytest.approx(0.1)
    assert model.meu({"x": "A"}, discount=0.9).supported == pytest.approx(0.96)
    assert model.meu({"x": "A"}).supported == pytest.approx(0.96)
    table = model.policy(2).table()
    assert table["supported"] == [pytest.approx(0.96), 1.0, 0.0]
    assert math.isnan(table["value"][F])


def random_edge(seed: int) -> RSPMN:
    """Two decisions and an observation between them; in places nothing is known after one."""
    rng = np.random.default_rng(seed)
    schema = Schema([["x"], ["a"], ["y"], ["b"]], ["a", "b"], "u")
    b = NetworkBuilder()
    states = 4

    def outcome() -> int:
        reached = rng.permutation(states + 2)[: int(rng.integers(1, 4))].tolist()
        if rng.random() < 0.15:
            reached = [states + 1]
        latents = [b.latent(int(i)) for i in reached]
        utility = b.utility("u", float(rng.normal()), float(rng.integers(0, 5)))
        return b.product([utility, b.sum(latents, simplex(rng, len(latents)))])

    def second() -> int:
        if rng.random() < 0.2:
            return b.max("b", {MARK: b.product([b.utility("u", 0.0), b.latent(states + 1)])})
        return b.max("b", {v: outcome() for v in range(2)})

    def first() -> int:
        weights = simplex(rng, 2)
        if rng.random() < 0.5:
            weights = [0.98, 0.02]
        parts = [b.product([b.leaf("y", Categorical.certain(y)), second()]) for y in range(2)]
        return b.sum(parts, weights)

    roots = [
        b.product([b.leaf("x", Categorical.certain(x)), b.max("a", {v: first() for v in range(3)})])
        for x in range(states)
    ]
    roots += [end_root(b, schema, states), unknown_root(b, schema, states + 1)]
    visits = (*rng.integers(1, 9, states).tolist(), 0.0, 0.0)
    top = weighted_top([*simplex(rng, states), 0.0, 0.0])
    return RSPMN(schema, top, b.build(*roots), visits)


@pytest.mark.parametrize("seed", seeds(6, 15))
def test_plain_and_compiled_know_as_much(seed: int) -> None:
    model = random_edge(seed)
    discount = (1.0, 0.9)[seed % 2]
    values, delays, supports = settled(model, 4, discount)
    future = Future.nothing(model)
    for steps in range(1, 5):
        future = update(model, future, discount)
        assert values[steps] == pytest.approx([r.utility for r in future.roots], abs=1e-12)
        assert delays[steps] == pytest.approx([r.delay for r in future.roots], abs=1e-12)
        assert supports[steps] == pytest.approx([r.supported for r in future.roots], abs=1e-12)
        assert model.bellman.values(steps, discount)[-1] == pytest.approx(values[steps], abs=1e-12)
    policy = model.policy(4, discount)
    for state in (None, {}, {"x": 0}, {"x": 3}):
        by_network = meu_of_network(model, state, 4, discount)
        for found in (policy.value(state), model.meu(state, 4, discount)):
            assert found == pytest.approx(by_network, abs=1e-12, nan_ok=True)
            assert found.supported == pytest.approx(by_network.supported, abs=1e-12)
            assert found.steps == by_network.steps


@pytest.mark.parametrize("seed", seeds(3, 6))
def test_the_limit_of_support(seed: int) -> None:
    """With a discount of .5 the values of 60 steps are those of the limit to 18 digits."""
    model = random_edge(seed)
    long, limit = model.meu(None, 60, 0.5), model.meu(None, None, 0.5)
    assert limit == pytest.approx(long, abs=1e-9, nan_ok=True)
    assert limit.supported == pytest.approx(long.supported, abs=1e-9)


def test_one_episode_that_was_cut() -> None:
    """200 episodes of three steps, and one that was cut after its first, in a state of its own."""
    schema = Schema([["x"], ["a"]], ["a"], "u")
    rng = np.random.default_rng(0)
    log: list[list[dict[str, object]]] = []
    for _ in range(200):
        made = rng.integers(0, 2, 3).tolist()
        log.append([{"x": k, "a": a, "u": float(a)} for k, a in enumerate(made)])
    log.append([{"x": 9, "a": 1, "u": 5.0}])
    endings = [Followed.END] * 200 + [Followed.UNKNOWN]
    model, _ = learn_rspmn(Episodes.from_steps(log, schema, endings))
    found = model.meu(horizon=5)
    assert found == pytest.approx(3.0)
    assert found.supported == pytest.approx(200 / 201)
    assert model.act(None, 5) == 1
    assert model.meu(horizon=1).supported == 1  # in the last step nothing need follow
    (answer,) = [a for a in model.action_values({"x": 9}, 5) if a.available]
    assert math.isnan(answer.utility)
    assert answer.supported == 0
    assert model.act({"x": 9}, 5) == 1  # all that was ever done there


def test_shares_are_written_without_rounding_up() -> None:
    assert (show_share(0.99502), show_share(0.9999), show_share(0.0)) == ("0.995", "0.999", "0")
    assert ExpectedUtility(2.0, 1 - 1e-12).supported == 1.0
    assert math.isnan(ExpectedUtility(-math.inf, 0.0))


def test_a_value_that_was_added_up_to_the_end_is_not_off() -> None:
    """Of networks and of few steps; other values may say that they are."""
    model = two_states(0.0)
    assert model.meu({"x": "A"}, 3).bound == meu_of_network(model, {"x": "A"}, 3).bound == 0.0
    assert ExpectedUtility(1.0, bound=0.5).bound == 0.5
