"""Likelihood of tables, and networks given evidence: both against the likelihood of single rows."""

import math

import numpy as np
import pytest

from effort import seeds
from plain_queries import evidence_of
from random_models import random_rspmn, random_setting, random_spn
from rspmn.circuit import Categorical, IntegerHistogram, NetworkBuilder, PiecewiseLinear
from rspmn.circuit.rewrite import at_step
from rspmn.data.episodes import Episodes, Followed
from rspmn.data.tables import as_table
from rspmn.end_nodes import end_root, marked_root, weighted_top
from rspmn.errors import EvidenceError
from rspmn.infer import conditioned, log_likelihood, log_likelihoods
from rspmn.infer.compiled.layers import DenseSums, compile_likelihood
from rspmn.infer.compiled.leaf_tables import distinct_columns
from rspmn.infer.likelihood import episode_log_likelihood, node_log_likelihoods
from rspmn.model import RSPMN
from rspmn.schema import Schema
from rspmn.values import UNKNOWN, Value


@pytest.mark.parametrize("seed", seeds(6, 200))
def test_the_rows_of_a_table(seed: int) -> None:
    """Missing values, a value never seen, variables without a column, open decisions."""
    rng = np.random.default_rng(seed)
    setting = random_setting(rng, decisions=1 + seed % 2)
    network = random_rspmn(rng, setting, 3, told_apart=seed % 2 == 0).unfold(2)
    table = {
        at_step(name, step): rng.choice(np.array([*values, None], object), 30)
        for name, values in setting.domains.items()
        for step in range(2)
    }
    table["s@0"][0] = "never seen"
    del table["s@1"]
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    plain = [log_likelihood(network, row) for row in rows]
    assert log_likelihoods(network, table) == pytest.approx(plain, abs=1e-12)
    assert plain[0] == -math.inf
    assert np.isfinite(plain).any()


def test_numbers_in_a_table() -> None:
    b = NetworkBuilder()
    x = b.leaf("x", PiecewiseLinear.scaled((0.0, 1.0, 3.0), (0.0, 2.0, 1.0)))
    n = b.leaf("n", IntegerHistogram((0, 1, 5), (0.25, 0.75)))
    network = b.build(b.product([x, n, b.utility("u", 1.0)]))
    table: dict[str, list[float]] = {
        "x": [0.5, 2.0, math.nan, 9.0],
        "n": [0, 3, 4, 4],
        "u": [0] * 4,
    }
    plain = [
        log_likelihood(network, {"x": x, "n": n})
        for x, n in zip(table["x"], table["n"], strict=True)
    ]
    assert log_likelihoods(network, table) == pytest.approx(plain, abs=1e-12)


def test_tables_that_are_refused() -> None:
    network = random_spn(np.random.default_rng(0), {"height": (0, 1)})
    with pytest.raises(EvidenceError, match="unknown variable 'hight': .*'height'"):
        log_likelihoods(network, {"hight": [0]})


def test_the_network_given_evidence() -> None:
    """P(x, y | z) by the conditioned network is P(x, y, z) / P(z)."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        network = random_spn(rng, {"x": (0, 1), "y": ("a", "b", "c"), "z": (False, True)})
        given = conditioned(network, {"z": True})
        for rest in ({"x": 0, "y": "b"}, {"x": 1}, {}):
            found = log_likelihood(given, rest)
            joint = log_likelihood(network, {**rest, "z": True})
            assert found == pytest.approx(joint - log_likelihood(network, {"z": True}), abs=1e-12)
        assert log_likelihood(given, {"z": False}) == -math.inf


def test_known_decisions_are_kept_and_impossible_branches_are_not() -> None:
    b = NetworkBuilder()
    sure = b.leaf("x", IntegerHistogram((0, 1), (1.0,)))
    wide = b.leaf("x", IntegerHistogram((0, 4), (1.0,)))
    network = b.build(b.max("d", {"sure": sure, "wide": wide}))
    assert log_likelihood(conditioned(network, {"d": "wide"}), {"d": "sure"}) == -math.inf
    given = conditioned(network, {"x": 2})
    assert getattr(given.nodes[given.root], "values", None) == ("wide",)
    with pytest.raises(EvidenceError, match="impossible under the network"):
        conditioned(network, {"d": "sure", "x": 2})


def test_sums_of_the_same_children() -> None:
    """One matrix product as node by node; also where the only child is e^-800 of another."""
    rng = np.random.default_rng(0)
    b = NetworkBuilder()
    names = [f"x{k}" for k in range(40)]
    chances = np.repeat([[0.4], [1e-9], [0.0], [0.3]], 2, axis=0) + rng.random((8, 40)) * 1e-10
    chances[4:6] = 0.0
    leaves = [
        b.product([b.leaf(names[k], Categorical((0, 1), (1 - p, p))) for k, p in enumerate(row)])
        for row in chances.tolist()
    ]
    weights = [*(rng.dirichlet(np.ones(8)) for _ in range(8)), np.eye(8)[2], np.eye(8)[4]]
    network = b.build(*(b.sum(leaves, (w / w.sum()).tolist()) for w in weights))
    compiled = compile_likelihood(network)
    assert any(isinstance(layer, DenseSums) for layer in compiled.layers)
    rows: list[dict[str, Value]] = [dict.fromkeys(names, 1), dict.fromkeys(names, 0), {}, {"x3": 1}]
    table = {name: np.array([row.get(name) for row in rows], object) for name in names}
    found = compiled(distinct_columns(as_table(table), names), len(rows))
    plain = [node_log_likelihoods(network, row) for row in rows]
    expected = np.array([[logs[root] for logs in plain] for root in network.roots])
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert found[8, 0] == pytest.approx(-828.9, abs=4)  # 40 · log 1e-9, and a little
    assert found[9, 0] == -math.inf


def test_steps_after_which_no_number_is_possible() -> None:
    """Fault: numbers below a decision that a log never makes could not be looked up."""
    schema = Schema([["x"], ["a"], ["z"]], ["a"], "u", {"z": "continuous"})
    b = NetworkBuilder()
    z = b.leaf("z", PiecewiseLinear((0.0, 1.0), (1.0, 1.0)))
    after = b.product([z, b.utility("u", 1.0), b.sum([b.latent(1)], [1.0])])
    root = b.product([b.leaf("x", Categorical.certain(0)), b.max("a", {"left": after})])
    model = RSPMN(schema, weighted_top([1.0, 0.0]), b.build(root, end_root(b, schema, 1)))
    for action, expected in (("left", 0.0), ("right", -math.inf)):
        step = {"episode": [0], "time": [0], "x": [0], "a": [action], "z": [0.5], "u": [1.0]}
        log = Episodes.from_long(step, schema, ending="end")
        assert episode_log_likelihood(model, evidence_of(log, 0)) == expected
        assert model.log_likelihood(log, False).tolist() == [expected]


def test_episodes_without_a_step() -> None:
    """Fault: of a state in which no decision is known, the steps of an episode were looked for."""
    b = NetworkBuilder()
    leads = b.product([b.utility("u", 1.0), b.sum([b.latent(0), b.latent(1)], [0.5, 0.5])])
    acts = b.product([b.leaf("x", Categorical.certain(0)), b.max("a", {"go": leads})])
    schema = Schema([["x"], ["a"]], ["a"], "u")
    rests = marked_root(b, schema, [b.leaf("x", Categorical.certain(1))], UNKNOWN, 1)
    template = b.build(acts, rests)
    for starts in ([0.5, 0.5], [0.0, 1.0]):
        model = RSPMN(schema, weighted_top(starts), template)
        log = model.sample(8, 3, 0)
        assert (log.lengths == 0).any()
        # a start is certain, or one of two; then each state that is known is one of two
        known = log.lengths - (log.endings == Followed.UNKNOWN)
        expected = math.log(0.5) * (known + (starts[0] > 0))
        assert model.log_likelihood(log, False) == pytest.approx(expected, abs=1e-12)
