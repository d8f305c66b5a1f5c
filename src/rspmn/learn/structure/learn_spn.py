"""The joint distribution of a table: latent trees, or LearnSPN on weighted rows.

LearnSPN makes products by independence and sums by clustering.
"""

from collections.abc import Sequence

import numpy as np

from rspmn.circuit import Network
from rspmn.learn.config import LatentTrees, LearnConfig, LearnInfo, Report
from rspmn.learn.structure.independence import components
from rspmn.learn.structure.learner import Learner
from rspmn.learn.structure.rows import Rows, read_columns
from rspmn.learn.structure.targets import targets_within


def learn_spn(
    source: object,
    names: Sequence[str] | None = None,
    config: LatentTrees | LearnConfig | None = None,
    rng: np.random.Generator | int = 0,
    report: Report | None = None,
) -> tuple[Network, LearnInfo]:
    """Learn the joint distribution of the columns of a table, or of some of them.

    Parameters
    ----------
    source
        A table, as for `rspmn.learn_spmn`.
    names
        The columns to learn from; by default all.
    config
        `LatentTrees()`, the default, estimates a smoothed density, in which no row is impossible.
        A `LearnConfig` chooses LearnSPN, without smoothing: `LearnConfig.paper()` is its published
        form, and `LearnConfig()` splits rows on single variables.
    rng
        A random generator or a seed.
    report
        A progress callback, called with a `Progress`.

    Examples
    --------
    >>> network, info = learn_spn({"x": [0, 1] * 500, "y": ["a", "b"] * 500})
    >>> from rspmn.infer import log_likelihood
    >>> round(float(np.exp(log_likelihood(network, {"x": 0, "y": "a"}))), 2)
    0.5
    """
    rng = np.random.default_rng(rng)
    if not isinstance(config, LearnConfig):
        from rspmn.learn.density.learn_density import learn_density

        return learn_density(source, names, config or LatentTrees(), rng, report)
    rows = read_columns(source, names, config.bins)
    learner = Learner(config, rng, rows, None, report)
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
    parts = components(names, learner.test(rows, names, names, rows.together).dependent)
    if len(parts) > 1:
        return learner.product([grow_spn(learner, rows, part, depth) for part in parts])
    clusters = learner.config.clustering(rows, names, targets_within(rows, names), learner.rng)
    if len(clusters) < 2:  # nothing is left to divide by
        return learner.product(learner.leaves(rows, names))
    children = [grow_spn(learner, part, names, depth + 1) for part in clusters]
    return learner.mixture([part.total for part in clusters], children)
