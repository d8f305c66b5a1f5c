"""A first draw of what is missing, one variable after the other.

Each is drawn given all others, by a tree that is learned from the steps that have it. In those of
them that were not drawn yet, missing is a value like any other: trees learn what its absence
leaves open, so that nothing has to be guessed to begin with.
"""

from dataclasses import replace

import numpy as np

from rspmn.infer.compiled.groups import drawn_columns
from rspmn.learn.missing.steps import CodedSteps
from rspmn.learn.successors.transitions import Contexts
from rspmn.learn.successors.trees import Tied
from rspmn.types import Array, Bools, Ints


def drawn_one_by_one(steps: CodedSteps, rng: np.random.Generator) -> CodedSteps:
    """Return the steps with a value for whatever is missing."""
    size = len(steps.names)
    codes = np.hstack([steps.state, steps.next])  # [rows, variables of both]
    lacking = np.hstack([steps.lacking, steps.next_lacking])
    names = (*steps.names, *(f"{name}'" for name in steps.names), "made", "outcome")
    sizes = np.concatenate([steps.sizes, steps.sizes, [steps.num_made, steps.num_outcomes]])
    for k in np.flatnonzero(lacking.any(axis=0)).tolist():
        others = np.column_stack([codes, steps.made, steps.outcome])
        others[:, k] = 0  # it does not depend on itself
        contexts = Contexts(names, sizes, others)
        if (codes[:, k] > 0).any():
            found = _drawn(contexts, codes[:, k], lacking[:, k], steps.weight, rng)
        else:  # nothing is known of it, here: any value
            found = rng.integers(1, sizes[k], size=int(lacking[:, k].sum()))
        codes[lacking[:, k], k] = found
    return replace(steps, state=codes[:, :size], next=codes[:, size:])


def _drawn(
    contexts: Contexts, codes: Ints, lacking: Bools, weight: Array, rng: np.random.Generator
) -> Ints:
    """Return a value for each row that lacks it, given its context."""
    known = np.flatnonzero(codes > 0)
    tree = Tied.learn(contexts, known, [codes[known]], weight[known])
    wanted = Contexts(contexts.names, contexts.sizes, contexts.codes[lacking])
    chances = tree.distribution(wanted).toarray()
    return drawn_columns(chances, rng)
