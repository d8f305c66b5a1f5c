"""Smoothed likelihoods: by hand, against a plain form, and in their limits."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate

from effort import SOAK
from plain_queries import evidence_of
from rspmn import RSPMN, SPMN, Episodes, NetworkBuilder, Schema
from rspmn.circuit import Categorical, Max, PiecewiseLinear, Product, Sum
from rspmn.data.episodes import Followed
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.envs.logs import LAYOUTS, Layout
from rspmn.errors import EvidenceError
from rspmn.infer.compiled.leaf_tables import Distinct
from rspmn.infer.compiled.smoothing import Background, mixed, visits_and_end
from rspmn.infer.compiled.template_trees import RootTrees, steps_behind
from rspmn.infer.evidence import Known, known_values
from rspmn.infer.likelihood import log_weighted_sum, node_log_likelihoods
from rspmn.learn import learn_rspmn
from rspmn.model import Evidence
from small_models import Moves, chain


def test_a_background_by_hand() -> None:
    """4 rows, one of them "a": (1 + 1)/7, (3 + 1)/7, and 1/7 for all that was never seen."""
    background = Background({"x": [Categorical(("a", "b"), (0.25, 0.75))]}, 4.0)
    found = np.exp(background.log_probs("x", ["a", "b", "new"]))
    assert found == pytest.approx([2 / 7, 4 / 7, 1 / 7])
    alike = Background({"x": [Categorical.certain("a"), Categorical.certain("b")]})
    assert np.exp(alike.log_probs("x", ["a", "b", "new"])) == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("rows", [0.0, 5.0])
def test_a_background_of_numbers_is_a_density(rows: float) -> None:
    leaves = [PiecewiseLinear((0.0, 1.0), (1.0, 1.0))]
    background = Background({"x": leaves}, rows)

    def density(x: float) -> float:
        return float(np.exp(background.log_probs("x", [x])[0]))

    inside, _ = integrate.quad(density, 0, 1)
    below, above = (integrate.quad(density, *ends)[0] for ends in ((-np.inf, 0), (1, np.inf)))
    assert below + inside + above == pytest.approx(1)
    # a Cauchy density has 2/π · atan(.5/scale) within .5 of its centre
    scale = 1 / math.sqrt(12) if rows else 0.5  # the standard deviation, or half the range
    cauchy = 2 / math.pi * math.atan(0.5 / scale)
    assert inside == pytest.approx((rows + cauchy) / (rows + 1))


def two_coins() -> SPMN:
    """x and y are equal in all 8 rows: the background does not know it."""
    b = NetworkBuilder()
    both = [b.product([b.leaf(n, Categorical.certain(v)) for n in "xy"]) for v in (0, 1)]
    network = b.build(b.product([b.sum(both, [0.5, 0.5]), b.utility("u", 0.0)]))
    fair = Categorical((0, 1), (0.5, 0.5))
    background = b.build(b.product([b.leaf("x", fair), b.leaf("y", fair)]))
    return SPMN(Schema([["x", "y"]], [], "u"), network, background, 8.0)


def test_rows_by_hand() -> None:
    model = two_coins()
    table = {"x": [0, 0, 0, None], "y": [0, 1, 7, 1]}
    each, new = 5 / 11, 1 / 11  # (4 + 1)/(8 + 2 + 1) and 1/(8 + 2 + 1)
    expected = [
        (8 * 0.5 + each * each) / 9,
        each * each / 9,
        (8 * 0.5 * new + each * new) / 9,  # 7 is as good as missing to the model
        (8 * 0.5 + each) / 9,
    ]
    assert np.exp(model.log_likelihood(table)) == pytest.approx(expected)
    assert np.exp(model.log_likelihood(table, smoothed=False)) == pytest.approx([0.5, 0, 0, 0.5])
    twice = np.exp(model.log_likelihood(table, smoothed=2))
    assert twice[1] == pytest.approx(2 * each * each / 10)
    with pytest.raises(EvidenceError, match="smoothed: expected a number of at least 0, found -1"):
        model.log_likelihood(table, smoothed=-1)


@pytest.mark.parametrize(("visits", "end"), [((6.0, 3.0, 0.0), 3.0), ((1.0, 0.5, 0.0), 1.0)])
def test_the_end_counts_as_the_mean_of_all(visits: tuple[float, ...], end: float) -> None:
    """Of 9 visits of three nodes END has 3; it has one visit at least."""
    moves: list[Moves] = [{"go": (0.0, {1: 1.0})}, {"go": (0.0, {2: 1.0})}]
    model = replace(chain(moves, end=True), visits=visits)
    assert visits_and_end(model).tolist() == [*visits[:2], end]


def mix(log_p: float, log_q: float, odds: float) -> float:
    return float(mixed(np.array(log_p), np.array(log_q), odds))


def plain_log_likelihood(model: RSPMN, log: Episodes, episode: int, weight: float) -> float:
    """Return the smoothed log-likelihood of an episode, node by node."""
    visits, background = visits_and_end(model), Background.of(model.template)
    shares, total = (visits / visits.sum()).tolist(), visits.sum() / weight
    sites = RootTrees(model.template).sites
    behind = steps_behind(model.template, sites) / weight
    odds = dict(zip(sites.nodes.tolist(), behind.tolist(), strict=True))

    def alone(step: Evidence) -> float:
        known = known_values(step, model.template)
        columns = {n: Distinct([v], np.zeros(1, np.int64)) for n, v in known.items()}
        return math.log(0.5) + float(background.log_likelihoods(columns, 1)[0])

    steps = evidence_of(log, episode)
    future, general = [0.0] * model.num_interfaces, 0.0
    if log.endings[episode] != Followed.UNKNOWN:
        last = steps.pop()
        logs = node_log_likelihoods(model.template, known_values(last, model.template))
        future = [logs[root] for root in model.template.roots]
        general = math.log(0.5) if log.endings[episode] == Followed.END else alone(last)
    general = mix(log_weighted_sum(shares, future), general, total)
    for step in reversed(steps):
        known = known_values(step, model.template)
        logs = smoothed_nodes(model, known, future, general, odds)
        future = [logs[root] for root in model.template.roots]
        by_visits = log_weighted_sum(shares, future)
        general = mix(by_visits, alone(step) + general, total)
    top = node_log_likelihoods(model.top, {}, future)[model.top.root]
    return mix(top, general, total)


def smoothed_nodes(
    model: RSPMN, known: Known, future: list[float], general: float, odds: dict[int, float]
) -> list[float]:
    """Return the log-likelihood of every node, each S_L mixed with what is general."""
    alone = node_log_likelihoods(model.template, known, future)
    logs: list[float] = []
    for index, node in enumerate(model.template.nodes):
        below = [logs[child] for child in node.children]
        match node:
            case _ if index in odds:
                logs.append(mix(alone[index], general, odds[index]))
            case Product():
                logs.append(sum(below))
            case Sum():
                logs.append(log_weighted_sum(node.weights, below))
            case Max():
                made = known[node.decision]
                logs.append(below[node.values.index(made)] if made in node.values else -math.inf)
            case _:
                logs.append(alone[index])
    return logs


@pytest.mark.parametrize("layout", LAYOUTS)
def test_episodes_as_node_by_node(layout: Layout) -> None:
    """Few episodes are learned from, so that much is new in others."""
    world = frozen_lake()
    model, _ = learn_rspmn(world.generate(40, 10, 0, layout))
    log = world.generate(100 if SOAK else 12, 10, 1, layout)
    for weight in (1.0, 0.25):
        plain = [plain_log_likelihood(model, log, e, weight) for e in range(len(log))]
        assert model.log_likelihood(log, weight) == pytest.approx(plain, abs=1e-9)
    bare = model.log_likelihood(log, smoothed=False)
    assert np.isneginf(bare).any()
    assert np.isfinite(plain).all()
    possible = np.isfinite(bare)
    assert model.log_likelihood(log, 1e-12)[possible] == pytest.approx(bare[possible], abs=1e-6)
