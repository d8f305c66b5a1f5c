"""Ways down the trees of a template: likelihoods, shares and choices, against the plain forms."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import seeds
from factored_models import random_factored
from random_models import Setting, random_rspmn, random_setting
from rspmn import RSPMN
from rspmn.circuit import Max, Sum
from rspmn.infer.compiled.leaf_tables import Distinct
from rspmn.infer.compiled.sites import sites_of
from rspmn.infer.compiled.template_trees import RootTrees, Ways
from rspmn.infer.likelihood import node_log_likelihoods
from rspmn.values import Value

ROWS = 12


def rows_of(setting: Setting, rng: np.random.Generator, lost: float) -> list[dict[str, Value]]:
    """Draw steps; of what is no decision, some values are missing."""
    found = []
    for _ in range(ROWS):
        row = {n: values[int(rng.integers(len(values)))] for n, values in setting.domains.items()}
        gone = [n for n in row if n not in setting.schema.decisions and rng.random() < lost]
        found.append({name: value for name, value in row.items() if name not in gone})
    return found


def ways_of(model: RSPMN, setting: Setting, rows: list[dict[str, Value]]) -> Ways:
    """Send every row down every root."""
    columns = {
        name: Distinct(list(values), np.array([
            values.index(row[name]) if name in row else -1 for row in rows
        ]))
        for name, values in setting.domains.items()
    }  # fmt: skip
    pairs = np.arange(ROWS * model.num_interfaces)
    row, root = np.divmod(pairs, model.num_interfaces)
    return Ways(RootTrees(model.template), columns, row, root)


@pytest.mark.parametrize("lost", [0.0, 0.3])
@pytest.mark.parametrize("seed", seeds(4, 200))
def test_ways(seed: int, lost: float) -> None:
    rng = np.random.default_rng(seed)
    setting = random_setting(rng, decisions=1 + seed % 3)
    model = random_rspmn(rng, setting, 3, told_apart=seed % 2 == 0, end=seed % 5 == 0)
    rows = rows_of(setting, rng, lost)
    ways = ways_of(model, setting, rows)
    logs = ways.up()
    flow = ways.down(logs, np.ones(len(ways.row)))
    on, sites = ways.likeliest(logs), set(ways.trees.sites.nodes.tolist())
    for pair, (row, root) in enumerate(zip(ways.row.tolist(), ways.root.tolist(), strict=True)):
        plain = node_log_likelihoods(model.template, rows[row])
        assert logs[pair] == pytest.approx(plain[model.template.roots[root]])
        here = np.flatnonzero((ways.pair == pair) & (ways.site >= 0))
        if logs[pair] > -math.inf:  # one S_L follows, whichever it is
            assert flow[here].sum() == pytest.approx(1)
            assert on[here].sum() == 1
        visited = np.flatnonzero((ways.pair == pair) & on)
        followed = []
        if logs[pair] > -math.inf:
            followed = plain_way(model, rows[row], plain, model.template.roots[root], sites)
        assert sorted(ways.node[visited].tolist()) == sorted(followed)


def plain_way(
    model: RSPMN, row: dict[str, Value], logs: list[float], index: int, sites: set[int]
) -> list[int]:
    """Return the nodes that are entered from one down, by the definition."""
    if index in sites:
        return [index]
    node = model.template.nodes[index]
    children = node.children
    if isinstance(node, Max):
        children = (children[node.values.index(row[node.decision])],)
    elif isinstance(node, Sum):
        scores = [
            logs[child] + (math.log(weight) if weight else -math.inf)
            for child, weight in zip(children, node.weights, strict=True)
        ]
        children = (children[int(np.argmax(scores))],)
    below = (plain_way(model, row, logs, child, sites) for child in children)
    return [index, *(i for part in below for i in part)]


@given(st.integers(0, 2**32 - 1))
def test_single_weights_of_products_are_those_multiplied_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    template = random_factored(rng).template
    sites = sites_of(template)
    size = len(template.roots)
    expected = np.zeros((len(sites.nodes), size))
    site = np.repeat(np.arange(len(sites.nodes)), np.diff(sites.starts))
    expected[site, sites.interfaces] = sites.weights
    found = np.zeros_like(expected)
    relation, weights = sites.counted
    found[np.repeat(np.arange(len(found)), relation.counts), relation.items] = weights
    products = sites.products
    assert products is not None
    for one in range(len(found)):
        for use in range(products.starts[one], products.starts[one + 1]):
            found[one] += products.weights(np.full(size, use), np.arange(size))
    assert found == pytest.approx(expected, abs=1e-14)
    assert np.exp(sites.log_totals) == pytest.approx(1.0)
