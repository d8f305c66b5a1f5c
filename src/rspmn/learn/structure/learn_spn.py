"""LearnSPN on weighted rows: products by independence, sums by clustering."""

from collections.abc import Sequence

import numpy as np

from rspmn.circuit import Network
from rspmn.learn.config import LearnConfig, LearnInfo, Report
from rspmn.learn.structure.learner import Learner
from rspmn.learn.structure.rows import Rows, read_columns
from rspmn.learn.structure.targets import targets_within
from rspmn.types import Bools


def learn_spn(
    source: object,
    names: Sequence[str] | None = None,
    config: LearnConfig | None = None,
    rng: np.random.Generator | int = 0,
    report: Report | None = None,
) -> tuple[Network, LearnInfo]:
    """Learn the joint distribution of the columns of a table, or of some of them.

    >>> network, info = learn_spn({"x": [0, 1] * 50, "y": ["a", "b"] * 50})
    >>> from rspmn.infer import log_likelihood
    >>> float(np.exp(log_likelihood(network, {"x": 0, "y": "a"})))
    0.5
    """
    config = config or LearnConfig()
    rows = read_columns(source, names, config.bins)
    learner = Learner(config, np.random.default_rng(rng), rows, None, report)
    root = grow_spn(learner, rows, tuple(names or rows.table.columns), 0)
    learner.report_done(rows.total)
    network = learner.builder.build(root)
    info = learner.info
    info.nodes, info.edges, info.seconds = len(network), network.num_edges, learner.seconds()
    return network, info


def grow_spn(learner: Learner, rows: Rows, names: tuple[str, ...], depth: int) -> int:
    """Add the network of some variables of some rows."""
    if len(names) == 1 or len(rows) == 1 or learner.out_of_budget(depth):
        return learner.product(learner.leaves(rows, names))
    strata = np.zeros(len(rows), dtype=np.int64)
    parts = components(names, learner.test(rows, names, names, strata).dependent)
    if len(parts) > 1:
        return learner.product([grow_spn(learner, rows, part, depth) for part in parts])
    clusters = learner.config.clustering(rows, names, targets_within(rows, names), learner.rng)
    if len(clusters) < 2:  # nothing is left to divide by
        return learner.product(learner.leaves(rows, names))
    children = [grow_spn(learner, part, names, depth + 1) for part in clusters]
    return learner.mixture(clusters, children)


def components(names: Sequence[str], dependent: Bools) -> list[tuple[str, ...]]:
    """Return the groups of variables that depend on each other, directly or by way of others."""
    from scipy.sparse.csgraph import connected_components

    count, label = connected_components(dependent | dependent.T, directed=False)
    return [
        tuple(name for name, group in zip(names, label, strict=True) if group == number)
        for number in range(count)
    ]
