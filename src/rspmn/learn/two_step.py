"""The two-step SPMN of Step 1, whole: for figures and study.

Interface nodes and weights need the successor for tests only; here it is learned too.
"""

from collections.abc import Sequence

import numpy as np

from rspmn.circuit import Network, NetworkBuilder
from rspmn.circuit.rewrite import graft
from rspmn.learn.config import LearnConfig
from rspmn.learn.structure.learn_spn import grow_spn
from rspmn.learn.structure.learner import Learner
from rspmn.learn.structure.rows import Rows
from rspmn.learn.two_step_rows import TwoSteps
from rspmn.types import Ints


def two_step_network(
    one_step: Network,
    sites: Sequence[Ints],
    two: TwoSteps,
    config: LearnConfig,
    rng: np.random.Generator,
) -> Network:
    """Return the one-step network with the successor's variables in the places of its latents."""
    counts = two.windows.counts.astype(np.float64)
    learner = Learner(config, rng, two.rows)
    if not two.after:  # whatever is done leads to the same state
        roots = [learner.builder.product([]) for _ in sites]
    else:
        rows = [Rows(two.table, site, counts[site]) for site in sites]
        roots = [grow_spn(learner, part, two.after, 0) for part in rows]
    successors = learner.builder.build(*roots)
    builder = NetworkBuilder()
    placed = graft(builder, successors, rename=None, latent=lambda _: None)
    at = [placed[root] for root in successors.roots]
    root = graft(builder, one_step, rename=None, latent=at.__getitem__)[one_step.root]
    assert root is not None, "the step's own variables are never left out"
    return builder.build(root)
