"""Stepwise expectation maximisation: parameters change after every few hundred rows."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rspmn.learn.density.latent_tree import ExpectedCounts, LatentTree
from rspmn.learn.density.symbols import CHUNK, Symbols

#: How far the counts move towards those of a batch, at first and in the end.
FIRST_STEP, LAST_STEP = 0.5, 0.04
#: A row that occurred several times is in up to so many batches of a pass, so that they are alike.
COPIES = 8
#: The least passes and the least steps of a run.
PASSES, STEPS = 4, 200
#: A run ends after so many passes that did not raise the held-out likelihood.
PATIENCE = 4
#: Smoothing while running, in rows; early stopping does the rest.
PSEUDO_ROWS = 0.1


@dataclass(frozen=True, eq=False)
class Run:
    """Where a run of EM ended."""

    counts: ExpectedCounts
    pseudo_rows: float
    held_out: float  # mean log-likelihood of a held-out row


def fit_tree(
    tree: LatentTree,
    rows: Symbols,
    held_out: Symbols,
    strengths: Sequence[float],
    rng: np.random.Generator,
    deadline: float = math.inf,
) -> tuple[LatentTree, Run]:
    """Return the tree re-estimated from rows until held-out rows become less likely.

    The strength of smoothing is then the one of `strengths` that makes them most likely.
    """

    def with_counts(counts: ExpectedCounts, pseudo_rows: float) -> LatentTree:
        return tree.reestimated(counts, rows, pseudo_rows)

    best: Run | None = None
    since = 0
    for counts in _passes(tree, rows, rng):
        found = with_counts(counts, PSEUDO_ROWS).mean_log_likelihood(held_out)
        since += 1
        if best is None or found > best.held_out:
            best, since = Run(counts, PSEUDO_ROWS, found), 0
        if since >= PATIENCE or time.monotonic() >= deadline:
            break
    assert best is not None
    tried = (
        Run(best.counts, rate, with_counts(best.counts, rate).mean_log_likelihood(held_out))
        for rate in strengths
    )
    best = max(tried, key=lambda run: run.held_out)
    return with_counts(best.counts, best.pseudo_rows), best


def _passes(tree: LatentTree, rows: Symbols, rng: np.random.Generator) -> Iterator[ExpectedCounts]:
    """Return the counts after each pass over the rows."""
    copies = np.clip(np.rint(rows.weights), 1, COPIES).astype(np.int64)
    rows, total = rows.weighed(rows.weights / copies), rows.weights.sum()
    index = np.repeat(np.arange(len(rows)), copies)
    batches = max(1, round(len(index) / CHUNK))
    passes = max(PASSES, math.ceil(STEPS / batches))
    counts: ExpectedCounts | None = None
    for number in range(passes):
        for k, part in enumerate(np.array_split(rng.permutation(index), batches)):
            batch = rows.take(part)
            scale = total / batch.weights.sum()
            found = tree.expected_counts(batch.weighed(batch.weights * scale))
            done = (number + k / batches) / passes
            step = FIRST_STEP * (LAST_STEP / FIRST_STEP) ** done if batches > 1 else 1.0
            counts = found if counts is None else counts.moved(found, step)
            tree = tree.reestimated(counts, rows, PSEUDO_ROWS)
        assert counts is not None
        yield counts
