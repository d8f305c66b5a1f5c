"""LearnSPMN: exact where the data are, and not deceived by how they came about."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import mostly_soak, seeds, share_of_examples
from oracle import empirical_meu
from reproductions.single_shot import SINGLE_SHOT
from rspmn import Schema
from rspmn.circuit import Leaf, Max, validity_violations
from rspmn.learn import LearnConfig, learn_spmn
from rspmn.spmn import SPMN

Table = dict[str, Any]


def learned(table: Table, schema: Schema, config: LearnConfig | None = None) -> SPMN:
    model, _ = learn_spmn(table, schema, config)
    assert validity_violations(model.network) == []
    return model


def split_on(model: SPMN, name: str) -> bool:
    """Say whether a variable has different leaves in different places."""
    leaves = {n for n in model.network.nodes if isinstance(n, Leaf) and n.variable == name}
    return len(leaves) > 1


# ---- exactness ------------------------------------------------------------------------


@share_of_examples(0.5)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(20, 400))
def test_split_everything_and_the_meu_is_that_of_the_data(
    seed: int, decisions: int, rows: int
) -> None:
    rng = np.random.default_rng(seed)
    order: list[list[str]] = [["x", "y"][: int(rng.integers(0, 3))]]
    for k in range(decisions):
        order += [[f"d{k}"], [f"z{k}"][: int(rng.integers(0, 2))]]
    schema = Schema(order, [f"d{k}" for k in range(decisions)], "u")
    table: Table = {n: rng.integers(0, 3, rows).tolist() for n in schema.variables[:-1]}
    table["u"] = (rng.normal(size=rows) * 10 ** float(rng.integers(-3, 7))).tolist()
    model = learned(table, schema, LearnConfig.exact())
    exact = empirical_meu(table, schema)
    assert float(model.meu()) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("name", SINGLE_SHOT)
@pytest.mark.parametrize("seed", seeds(1, 10))
def test_the_default_finds_what_the_data_hold(name: str, seed: int) -> None:
    """Within 0.2 % of the sum-max-sum rule on the data; the data themselves vary more than that."""
    problem = SINGLE_SHOT[name]()
    table = problem.sample(100_000, seed)
    model = learned(table, problem.schema)
    exact = empirical_meu(table, problem.schema)
    assert float(model.meu()) == pytest.approx(exact, rel=0.002)
    # and so of the optimum, up to what sampling does: five standard errors of a mean over the
    # rows that made the best choices, 1/|choices| of them for each decision
    choices = math.prod(len(set(table[d])) for d in problem.schema.decisions)
    spread = np.std(np.array(table[problem.schema.utility], dtype=float))
    error = float(spread) / math.sqrt(100_000 / choices)
    assert float(model.meu()) == pytest.approx(problem.optimum(), abs=5 * error)


@pytest.mark.parametrize("name", SINGLE_SHOT)
def test_the_best_decisions_are_the_optimal_ones(name: str) -> None:
    problem = SINGLE_SHOT[name]()
    model = learned(problem.sample(50_000, 7), problem.schema)

    def follow(past: dict[str, Any]) -> float:
        """Return the true value of doing what the model finds best."""
        variable = next((n for n in problem.schema.variables[:-1] if n not in past), None)
        if variable is None:
            return problem.utility(past)
        if variable in problem.schema.decisions:
            best = model.best_decisions(past)[0].value
            return follow({**past, variable: best})
        chances = problem.chances[variable](past)
        return sum(p * follow({**past, variable: v}) for v, p in chances.items() if p > 0)

    assert follow({}) == pytest.approx(problem.optimum(), rel=1e-12)


# ---- traps ----------------------------------------------------------------------------


def test_a_context_that_matters_only_through_the_choice() -> None:
    """X and the action are uniform, and the utility is 1 when they match: P(u) = 1/2 given either.

    No pair of variables depends on each other, but who looks at X earns 1.
    """
    rng = np.random.default_rng(0)
    x, a = rng.integers(0, 4, 4000), rng.integers(0, 4, 4000)
    schema = Schema([["x"], ["a"]], ["a"], "u")
    model = learned({"x": x, "a": a, "u": (x == a) * 1.0}, schema)
    assert model.meu() == 1.0
    for value in range(4):
        assert [b.value for b in model.best_decisions({"x": value})] == [value]


@pytest.mark.parametrize("noise", [0, 5])
def test_two_bits_that_matter_only_together(noise: int) -> None:
    """The utility is 1 when the action equals X xor Z; neither X nor Z alone tells anything."""
    rng = np.random.default_rng(1)
    bits = {name: rng.integers(0, 2, 8000) for name in ("x", "z", *(f"n{k}" for k in range(noise)))}
    a = rng.integers(0, 2, 8000)
    schema = Schema([list(bits), ["a"]], ["a"], "u")
    model = learned({**bits, "a": a, "u": (a == bits["x"] ^ bits["z"]) * 1.0}, schema)
    assert model.meu() == 1.0
    for k in range(noise):
        assert not split_on(model, f"n{k}")


def test_a_variable_that_only_the_old_policy_looked_at() -> None:
    """The world ignores X: it is not split on, and the network is as small as without it."""
    rng = np.random.default_rng(2)
    x = rng.integers(0, 3, 20_000)
    s = rng.integers(0, 2, 20_000)
    a = np.where(rng.random(20_000) < 0.8, x, rng.integers(0, 3, 20_000))
    u = np.where(a == s, 1.0, 0.0) + rng.integers(0, 2, 20_000)
    with_x = learned({"x": x, "s": s, "a": a, "u": u}, Schema([["x", "s"], ["a"]], ["a"], "u"))
    without = learned({"s": s, "a": a, "u": u}, Schema([["s"], ["a"]], ["a"], "u"))
    assert not split_on(with_x, "x")
    assert len(with_x.network) <= len(without.network) + 2  # its leaf, and a product to hold it
    assert float(with_x.meu()) == pytest.approx(float(without.meu()), abs=1e-9)


def test_simpson_s_paradox() -> None:
    """The severe were given B, and B looks worse; it is better for the mild and for the severe.

    Recovery: mild 80 % with A, 90 % with B; severe 20 % with A, 30 % with B. Three in four of the
    mild got A, three in four of the severe B. On average A cured .75·.8 + .25·.2 = 65 % of its
    patients and B .25·.9 + .75·.3 = 45 %, and yet B is right: MEU = (.9 + .3)/2 = .6.
    """
    cured = {("mild", "A"): 0.8, ("mild", "B"): 0.9, ("severe", "A"): 0.2, ("severe", "B"): 0.3}
    rows = [
        (state, drug, recovered)
        for (state, drug), rate in cured.items()
        for recovered, share in ((1.0, rate), (0.0, 1 - rate))
        for _ in range(round(4000 * share * (0.75 if (state == "mild") == (drug == "A") else 0.25)))
    ]
    table = dict(zip(("state", "drug", "u"), map(list, zip(*rows, strict=True)), strict=True))
    naive = {
        d: np.mean([u for u, e in zip(table["u"], table["drug"], strict=True) if e == d])
        for d in "AB"
    }
    assert naive["A"] == pytest.approx(0.65)
    assert naive["B"] == pytest.approx(0.45)
    model = learned(table, Schema([["state"], ["drug"]], ["drug"], "u"))
    assert float(model.meu()) == pytest.approx(0.6)
    for state in ("mild", "severe"):
        assert [b.value for b in model.best_decisions({"state": state})] == ["B"]


@pytest.mark.parametrize("law", [True, False])
def test_an_action_that_is_unavailable_in_some_states(law: bool) -> None:
    """Flying earns most, but penguins never fly: the utility tells nothing else apart.

    The log does not say whether they cannot, so that flying is not offered to them.
    """
    rng = np.random.default_rng(3)
    bird = rng.choice(["penguin", "gull"], 5000)
    act = np.where(bird == "gull", rng.choice(["fly", "swim"], 5000), "swim")
    table: Table = {"bird": bird, "act": act, "u": np.where(act == "fly", 2.0, 1.0)}
    laws = {"fly": "bird != penguin"} if law else {}
    model = learned(table, Schema([["bird"], ["act"]], ["act"], "u", available=laws))
    offered = {a.value: a.supported for a in model.action_values({"bird": "penguin"})}
    assert offered == {"swim": True, "fly": False}
    assert model.meu({"bird": "penguin"}) == 1.0
    assert model.meu({"bird": "gull"}) == 2.0
    share = float((bird == "gull").mean())
    assert float(model.meu()) == pytest.approx(1 + share)


def test_a_dominated_action_tried_rarely() -> None:
    """The good action was tried 20 times in 10,000; it is known, counted, and chosen."""
    rng = np.random.default_rng(4)
    act = np.array(["usual"] * 9980 + ["rare"] * 20)
    u = np.where(act == "usual", 1.0 + rng.integers(0, 2, 10_000), 10.0)
    model = learned({"a": act, "u": u}, Schema([["a"]], ["a"], "u"))
    (best,) = model.best_decisions()
    assert (best.value, best.utility, best.steps) == ("rare", 10.0, 20.0)
    bad = np.where(act == "usual", 1.0, -10.0)
    (best,) = learned({"a": act, "u": bad}, Schema([["a"]], ["a"], "u")).best_decisions()
    assert best.value == "usual"


def test_a_choice_that_two_variables_together_rule_out() -> None:
    """e is unavailable where x = y = 1, which neither x nor y alone says."""
    rng = np.random.default_rng(8)
    x, y, e = rng.integers(0, 2, (3, 4000))
    e = np.where((x == 1) & (y == 1), 0, e)
    schema = Schema([["x", "y"], ["e"]], ["e"], "u")
    table: Table = {"x": x, "y": y, "e": e, "u": 2.0 * e}
    assert learned(table, schema).meu({"x": 1, "y": 1}) == 2.0  # it may be a habit
    schema = Schema([["x", "y"], ["e"]], ["e"], "u", available={"1": "x == 0 or y == 0"})
    model = learned(table, schema)
    assert model.meu({"x": 1, "y": 1}) == 0.0
    assert float(model.meu()) == pytest.approx(empirical_meu(table, schema), rel=1e-9)


def test_a_rare_jackpot() -> None:
    """In one row of twenty, 1000 if the action matches x, else 10: in the utility's last bin."""
    rng = np.random.default_rng(9)
    x, a = rng.integers(0, 2, (2, 20_000))
    jackpot = rng.random(20_000) < 0.05
    u = np.where(jackpot, np.where(a == x, 1000.0, 10.0), rng.normal(size=20_000))
    schema = Schema([["x"], ["a"]], ["a"], "u")
    table: Table = {"x": x, "a": a, "u": u}
    exact = empirical_meu(table, schema)
    assert float(learned(table, schema).meu()) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("border", mostly_soak([0.03, 0.35, 0.5, 0.97], [0.03, 0.5]))
def test_a_border_on_a_number_line_is_found(border: float) -> None:
    """The right action changes at a border; bins are made anew in each part, to close in on it."""
    rng = np.random.default_rng(10)
    x, a = rng.random(20_000), rng.integers(0, 2, 20_000)
    u = 1.0 * ((x > border) == a)
    model = learned({"x": x, "a": a, "u": u}, Schema([["x"], ["a"]], ["a"], "u"))
    assert float(model.meu()) > 0.995
    for value in np.linspace(0.005, 0.995, 100):
        if abs(value - border) > 0.02:
            best = model.best_decisions({"x": float(value)})
            assert [b.value for b in best] == [int(value > border)]
    for value in (x.max() + 1e-6, 2.0, 1e6, -1.0):
        assert [b.value for b in model.best_decisions({"x": value})] == [int(value > border)]


def test_a_number_that_is_sometimes_one_value() -> None:
    """x is exactly .5 when w is 0, and near it when w is 1: then .5 itself means w = 0."""
    rng = np.random.default_rng(11)
    w, a = rng.integers(0, 2, (2, 4000))
    x = np.where(w == 0, 0.5, rng.uniform(0.495, 0.505, 4000))
    schema = Schema([["w", "x"], ["a"]], ["a"], "u")
    model = learned({"w": w, "x": x, "a": a, "u": 1.0 * (a == w)}, schema)
    assert [b.value for b in model.best_decisions({"x": 0.5})] == [0]


def test_integers_of_many_values_split_exactly() -> None:
    rng = np.random.default_rng(12)
    x, a = rng.integers(0, 100, 6000), rng.integers(0, 2, 6000)
    table = {"x": x, "a": a, "u": 1.0 * (x % 2 == a)}
    model = learned(table, Schema([["x"], ["a"]], ["a"], "u"), LearnConfig.exact())
    assert model.meu() == 1.0


# ---- order ----------------------------------------------------------------------------


def test_no_information_before_the_first_decision() -> None:
    rng = np.random.default_rng(5)
    d, e = rng.integers(0, 2, 2000), rng.integers(0, 2, 2000)
    x = rng.integers(0, 2, 2000)
    # earned: 3 for d, and 2 for e matching x; x is seen between the two
    table = {"d": d, "x": x, "e": e, "u": 3.0 * d + 2.0 * (e == x)}
    model = learned(table, Schema([["d"], ["x"], ["e"]], ["d", "e"], "u"))
    assert model.meu() == 5.0
    assert model.meu({"d": 0}) == 2.0
    assert [b.value for b in model.best_decisions({"d": 0, "x": 1})] == [1]


def test_several_variables_beside_the_utility() -> None:
    """The last information set holds a and b, dependent, and the utility of their sum."""
    rng = np.random.default_rng(6)
    d = rng.integers(0, 2, 4000)
    a = (rng.random(4000) < np.where(d == 1, 0.8, 0.3)).astype(int)
    b = np.where(rng.random(4000) < 0.9, a, 1 - a)
    table: Table = {"d": d, "a": a, "b": b, "u": (a + b).astype(float)}
    schema = Schema([["d"], ["a", "b"]], ["d"], "u")
    model = learned(table, schema)
    assert float(model.meu()) == pytest.approx(empirical_meu(table, schema), rel=1e-9)
    # given what is seen afterwards, the utility is known: 1 + 1
    assert model.meu({"d": 1, "a": 1, "b": 1}) == 2.0
    both = float(np.mean((a == 1) & (b == 1) & (d == 1)) / np.mean(d == 1))
    assert np.exp(model.log_likelihood({"d": [1], "a": [1], "b": [1]})[0]) == pytest.approx(
        both, rel=1e-3
    )
    assert max(len(n.values) for n in model.network.nodes if isinstance(n, Max)) == 2
