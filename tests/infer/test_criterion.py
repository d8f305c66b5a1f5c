"""The rule at max nodes, replaced: plain and compiled, finite and infinite horizon alike."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from conformance import check_criterion
from effort import seeds
from random_models import random_rspmn, random_setting
from rspmn.circuit import Categorical, Leaf, Max, Network, NetworkBuilder, Product, Sum
from rspmn.end_nodes import weighted_top
from rspmn.errors import EvidenceError
from rspmn.infer import Branches, MaximumExpectedUtility, action_values, best_decisions, meu
from rspmn.infer.bellman import Future, update
from rspmn.infer.branches import Context
from rspmn.infer.criterion import TIE, best_branches, soonest, soonest_of_each
from rspmn.infer.criterion import tied_branches as tied_of_one
from rspmn.model import RSPMN
from rspmn.schema import Schema
from rspmn.spmn import SPMN
from rspmn.types import Array
from rspmn.values import UNKNOWN, Value
from small_models import chain

SEEDS = seeds(2, 24)


@dataclass(frozen=True)
class Never:
    """Forbids an action where a variable that is known before it may have a value."""

    decision: str
    action: Value
    name: str
    value: Value

    def scores(self, worth: Array, branches: Branches) -> Array:
        action = (branches.decisions == self.decision) & (branches.values == self.action)
        return np.where(action & branches.may_be(self.name, self.value), np.nan, worth)


@dataclass(frozen=True)
class Tried:
    """Forbids actions that were logged less often than so many times, if others were not."""

    least: float

    def scores(self, worth: Array, branches: Branches) -> Array:
        return np.where(branches.steps < self.least, -np.inf, worth)


@dataclass(frozen=True)
class Cautious:
    """Takes off what is earned the less the better it was tried."""

    weight: float

    def scores(self, worth: Array, branches: Branches) -> Array:
        return worth - self.weight / np.sqrt(branches.steps + 1)


def model_of(seed: int) -> RSPMN:
    rng = np.random.default_rng(seed)
    setting = random_setting(rng, decisions=1 + seed % 2)
    return random_rspmn(rng, setting, 3, told_apart=True, end=seed % 3 == 0)


def pruned(model: RSPMN, rule: Never) -> RSPMN:
    """Return the model without the branches that a rule forbids; UNKNOWN where none is left."""
    b, nodes = NetworkBuilder(), model.template.nodes

    def copy(index: int, applies: bool) -> int:
        node = nodes[index]
        match node:
            case Product():
                return b.product([copy(c, applies) for c in node.children])
            case Sum():
                return b.sum([copy(c, applies) for c in node.children], node.weights)
            case Max():
                made = {
                    v: copy(c, applies) for v, c in zip(node.values, node.children, strict=True)
                }
                if applies and node.decision == rule.decision:
                    removed = made.pop(rule.action, None)
                    made = made or {UNKNOWN: removed}  # type: ignore[dict-item]
                return b.max(node.decision, made)
            case _:
                return b.add(node)

    roots = [copy(root, _holds(model.template, root, rule)) for root in model.template.roots]
    return RSPMN(model.schema, model.top, b.build(*roots), model.visits)


def _holds(network: Network, root: int, rule: Never) -> bool:
    leaf = network.nodes[network.nodes[root].children[0]]
    assert isinstance(leaf, Leaf)
    assert leaf.variable == rule.name
    return leaf.distribution.log_prob(rule.value) > -math.inf


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("horizon", [1, 3, None])
def test_a_constraint_is_a_model_without_the_branches(seed: int, horizon: int | None) -> None:
    model, discount = model_of(seed), 0.8
    rule = Never(model.schema.decisions[-1], 0, "s", "q")
    less = pruned(model, rule)
    values = model.values(horizon, discount, criterion=rule)
    assert values == pytest.approx(less.values(horizon, discount), abs=1e-9)
    policy, other = model.policy(horizon, discount, criterion=rule), less.policy(horizon, discount)
    for state in ({"s": "p"}, {"s": "q"}, {"s": "r"}, {}, None):
        found = model.meu(state, horizon, discount, criterion=rule)
        expected = less.meu(state, horizon, discount)
        assert found == pytest.approx(expected, abs=1e-9, nan_ok=True)
        assert found.supported == pytest.approx(expected.supported, abs=1e-9)
        assert policy.value(state) == pytest.approx(found, abs=1e-9, nan_ok=True)
        best = {a.value for a in policy.action_values(state) if a.best}
        assert best == {
            a.value for a in model.best_decisions(state, horizon, discount, criterion=rule)
        }
        if state and len(model.schema.decisions) == 1:
            assert best == {a.value for a in other.action_values(state) if a.best}
            assert (0 in best and state["s"] == "q") is False


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("criterion", [Never("D1", 0, "s", "q"), Tried(4), Cautious(2.0)])
def test_plain_and_compiled_agree(seed: int, criterion: Never | Tried | Cautious) -> None:
    model = model_of(seed)
    future = Future.nothing(model)
    found = model.bellman.values(5, 0.9, criterion)
    for steps in range(1, 6):
        plain = [root.utility for root in future.roots]
        assert found[steps - 1] == pytest.approx(plain, abs=1e-9)
        policy = model.policy(steps, 0.9, criterion=criterion)
        for state in ({"s": "p"}, {"s": "q"}, {"s": "r"}):
            answers = action_values(
                model.from_anywhere, state, "D1", future.discounted(0.9), criterion
            )
            mine = {a.value: a for a in policy.action_values(state)}
            for answer in answers:
                same = mine[answer.value]
                assert same.best == answer.best
                assert same.utility == pytest.approx(answer.utility, abs=1e-9, nan_ok=True)
        future = update(model, future, 0.9, criterion=criterion)


def test_a_constraint_by_hand() -> None:
    """Where x is 1 nobody may jump, though it earns 5 and to walk earns 1."""
    moves = [
        {"walk": (1.0, {1: 1.0}), "jump": (5.0, {1: 1.0})},
        {"walk": (1.0, {2: 1.0}), "jump": (5.0, {2: 1.0})},
    ]
    model = chain(moves, end=True)
    rule = Never("a", "jump", "x", 1)
    assert model.meu() == 10.0
    for horizon in (2, None):
        assert model.meu(None, horizon, criterion=rule) == 6.0
        policy = model.policy(horizon, criterion=rule)
        assert [policy.act({"x": x}) for x in (0, 1)] == ["jump", "walk"]
        assert policy.act_many({"x": [0, 1]}).tolist() == ["jump", "walk"]
        assert policy.table()["a"] == ["jump", "walk"]
        walk, jump = model.action_values({"x": 1}, horizon, criterion=rule)
        # what it would earn is still said, but it is not best
        assert (walk.utility, jump.utility, walk.best, jump.best) == (1.0, 5.0, True, False)
        # whoever does not know where he is must not jump
        assert policy.act({}) == "walk"
        # a decision that was made is a fact
        assert model.meu({"x": 1, "a": "jump"}, horizon, criterion=rule) == 5.0


def test_where_nothing_is_allowed() -> None:
    """Nothing may be done in 1, so it is worth as little as anything, and is not gone to."""
    moves = [
        {"stay": (1.0, {2: 1.0}), "go": (5.0, {1: 1.0})},
        {"go": (9.0, {2: 1.0})},
    ]
    model = chain(moves, end=True)
    rule = Never("a", "go", "x", 1)
    policy = model.policy(3, otherwise="stay", criterion=rule)
    assert model.values(3, criterion=rule) == [5.0, 0.0, 0.0]
    assert policy.act({"x": 0}) == "go"
    assert policy.act({"x": 1}) == "stay"
    assert not any(a.best for a in policy.action_values({"x": 1}))
    assert not policy.value({"x": 1}).supported
    with pytest.raises(EvidenceError, match="no decision is known in the state x=1"):
        model.policy(3, criterion=rule).act({"x": 1})


@pytest.mark.parametrize("horizon", [2, 3, None])
def test_what_leads_to_where_nothing_is_allowed_is_not_supported(horizon: int | None) -> None:
    """ "go" leads to 1 in three of four cases; in the last step it does not matter where to."""
    moves = [
        {"stay": (1.0, {2: 1.0}), "go": (5.0, {1: 0.75, 2: 0.25})},
        {"go": (9.0, {2: 1.0})},
    ]
    model, rule = chain(moves, end=True), Never("a", "go", "x", 1)
    assert model.meu({"x": 1}, horizon, criterion=rule).supported == 0.0
    assert model.meu({"x": 0}, horizon, criterion=rule).supported == pytest.approx(0.25)
    assert model.meu({"x": 0}, 1, criterion=rule).supported == 1.0
    stay, go = model.action_values({"x": 0}, horizon, criterion=rule)
    assert (stay.supported, go.supported) == pytest.approx((1.0, 0.25))


def test_scores_are_not_values() -> None:
    """A cautious choice is worth what it is expected to earn, not its score."""
    b = NetworkBuilder()
    network = b.build(b.max("d", {"often": b.utility("u", 1.0, 99), "once": b.utility("u", 2.0)}))
    assert meu(network, criterion=Cautious(10.0)) == 1.0  # 1 - 10/10 against 2 - 10/1
    assert [a.value for a in best_decisions(network, criterion=Cautious(10.0))] == ["often"]
    assert meu(network, criterion=Cautious(0.1)) == 2.0


def test_single_shot_models() -> None:
    b = NetworkBuilder()
    parts = [
        b.product(
            [
                b.leaf("x", Categorical.certain(x)),
                b.max("d", {k: b.utility("u", float(x + k)) for k in range(3)}),
            ]
        )
        for x in range(2)
    ]
    model = SPMN(Schema([["x"], ["d"]], ["d"], "u"), b.build(b.sum(parts, [0.5, 0.5])))
    rule = Never("d", 2, "x", 1)
    assert model.meu() == 2.5
    assert model.meu(criterion=rule) == 2.0
    assert [a.value for a in model.best_decisions({"x": 1}, criterion=rule)] == [1]
    assert model.policy(criterion=rule).act({"x": 1}) == 1
    assert model.policy(criterion=rule).value() == 2.0


def test_what_a_criterion_knows_of_branches() -> None:
    b = NetworkBuilder()
    second = b.max("e", {0: b.utility("u", 1.0, 3), 1: b.utility("u", 2.0, 4)})
    first = b.max("d", {"l": second, "r": b.max("e", {0: b.utility("u", 5.0, 6)})})
    root = b.product([b.leaf("x", Categorical((1, 2), (0.5, 0.5))), first])
    network = b.build(root)
    nodes = [i for i, node in enumerate(network.nodes) if isinstance(node, Max)]
    found = Context(network).branches_of(np.array(nodes), np.array([0, 2, 3]))
    assert found.decisions.tolist() == ["e", "e", "e", "d", "d"]
    assert found.values.tolist() == [0, 1, 0, "l", "r"]
    assert found.steps.tolist() == [3, 4, 6, 7, 6]
    assert found.node.tolist() == [0, 0, 1, 2, 2]
    assert found.may_be("x", 2).all()
    assert not found.may_be("x", 3).any()
    assert found.may_be("d", "l").tolist() == [True, True, False, False, False]
    with pytest.raises(EvidenceError, match="'e' is not known before any decision"):
        found.may_be("e", 0)


@pytest.mark.parametrize("seed", seeds(15, 400))
def test_one_node_and_many_by_the_same_rule(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, 6)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    total = int(sizes.sum())
    worth = rng.choice([0.0, 1.0, 1.0 + TIE / 2, -3.0, 1e-12, -np.inf], total)
    scores = worth if seed % 2 else rng.choice([0.0, 1.0, np.nan, -np.inf], total)
    delays = rng.choice([0.0, -1.0, 2.0], total)
    branches = Branches(Context(None), starts, total, lambda: (starts, starts))  # type: ignore[arg-type]
    within = 0.0 if seed % 3 else 1.5
    mask, best = best_branches(worth, scores, branches, within=within)
    chosen = soonest_of_each(mask, delays, branches)
    for k, (start, size) in enumerate(zip(starts.tolist(), sizes.tolist(), strict=True)):
        part = slice(start, start + size)
        mine = worth[part].tolist()
        tied = tied_of_one(mine, mine if seed % 2 else scores[part].tolist(), within)
        assert np.flatnonzero(mask[part]).tolist() == tied
        assert best[k] == max((mine[i] for i in tied), default=-np.inf)
        if tied:
            assert chosen[k] - start == soonest(tied, delays[part].tolist())


class MostTried:
    """Allows the action of a node that was logged most often."""

    def scores(self, worth: Array, branches: Branches) -> Array:
        most = np.maximum.reduceat(branches.steps, branches.starts)
        return np.where(branches.steps == most[branches.node], worth, np.nan)


def tried_in_two_states() -> RSPMN:
    """In state 0 "go" was logged 5 times and "stay" 3 times; "jump", in state 1 only, 9 times."""
    tried = [{"stay": (7.0, 3), "go": (1.0, 5)}, {"go": (2.0, 4), "jump": (3.0, 9)}]
    b, schema = NetworkBuilder(), Schema([["x"], ["a"]], ["a"], "u")
    roots = []
    for x, actions in enumerate(tried):
        made = {
            name: b.product([b.utility("u", mean, count), b.latent(0)])
            for name, (mean, count) in actions.items()
        }
        roots.append(b.product([b.leaf("x", Categorical.certain(x)), b.max("a", made)]))
    return RSPMN(schema, weighted_top([0.5, 0.5]), b.build(*roots), (8.0, 13.0))


def test_a_criterion_compares_the_actions_on_offer_alone() -> None:
    """How often "jump" was logged elsewhere says nothing of state 0, where nobody can jump."""
    model = tried_in_two_states()
    policy = model.policy(1, criterion=MostTried())
    states = [{"x": 0}, {"x": 1}]
    assert [policy.act(state) for state in states] == ["go", "jump"]
    assert policy.act_many({"x": [0, 1]}).tolist() == ["go", "jump"]
    for state, best in zip(states, ["go", "jump"], strict=True):
        assert [a.value for a in policy.action_values(state) if a.best] == [best]
        plain = best_decisions(model.from_anywhere, state, criterion=MostTried())
        assert [a.value for a in plain] == [best]
    # Where the state is not known each action is what was logged in both: "go" 5 + 4 times, as
    # often as "jump". Of "jump" less is known, as it is on offer in 13 of 21 steps only.
    assert policy.act({}) == policy.act_many({"x": [None]})[0] == "go"
    check_criterion(MostTried(), model)


def test_the_checks_find_what_is_wrong() -> None:
    for good in (MaximumExpectedUtility(), Never("treat", "drug", "age", "old"), Cautious(1.0)):
        check_criterion(good)

    class Wrong:
        def __init__(self, scores: object) -> None:
            self.of = scores

        def scores(self, worth: Array, branches: Branches) -> Array:
            return self.of(worth, branches)  # type: ignore[operator, no-any-return]

    def changed(worth: Array, _: Branches) -> Array:
        worth += 1
        return worth

    rng = np.random.default_rng(0)
    for scores, message in [
        (lambda worth, _: worth[:1], "a score for each branch"),
        (lambda worth, _: rng.random(len(worth)), "other scores"),
        (changed, "changed the worth"),
        (lambda worth, _: worth - worth.max(), "depend on other nodes"),
        (lambda worth, _: worth + np.inf, "finite, -inf or NaN"),
    ]:
        with pytest.raises(AssertionError, match=message):
            check_criterion(Wrong(scores))
    with pytest.raises(EvidenceError, match="expected a score for each of 3 branches"):
        chain([{"l": (0.0, {1: 1.0}), "r": (0.0, {1: 1.0})}], end=True).meu(
            None, 1, criterion=Wrong(lambda _, __: np.zeros(1))
        )
