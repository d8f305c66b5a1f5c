"""What follows the last decision of a step: the last set, the utility, and the successor.

LearnSPN (Sec. 4, Step 1) in which the successor is treated as one variable. Its place in the
one-step network is a latent with a number of its own, and `sites` holds the windows behind each
number. Step 3 puts an S_L there.
"""

from collections.abc import Sequence

import numpy as np

from rspmn.learn.structure.grow import Codes, with_missing_cluster
from rspmn.learn.structure.independence import components
from rspmn.learn.structure.learn_spn import grow_spn
from rspmn.learn.structure.learner import Learner
from rspmn.learn.structure.rows import Rows
from rspmn.learn.structure.targets import Target, Targets
from rspmn.types import Bools, Ints


class RecurrentOutcome:
    """Adds utility and successor, and records the windows behind each place for an S_L."""

    def __init__(self, utility: str, after: Sequence[str]) -> None:
        self.utility = utility
        self.after = tuple(after)
        self.beyond = (utility, *after)
        self.recurs = True
        self.sites: list[Ints] = []  # of each place, the windows

    def __call__(self, learner: Learner, rows: Rows, names: tuple[str, ...], depth: int) -> int:
        """Add the network of the last set, the utility and the successor."""
        return learner.product(self._outcome(learner, rows, (*names, self.utility), depth))

    def certain(self, learner: Learner, rows: Rows, codes: Codes) -> dict[int, int]:
        """Add the utility and the successor of decisions with a constant utility."""
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.append(True, np.diff(codes[order]) != 0))
        earned = rows.table.columns[self.utility].data[rows.index[order]]
        same = np.minimum.reduceat(earned, starts) == np.maximum.reduceat(earned, starts)
        spread = rows.table.columns[self.utility].spread
        if spread is not None:
            same &= np.maximum.reduceat(spread[rows.index[order]], starts) == 0
        weight = np.add.reduceat(rows.weights[order], starts)
        origin = rows.origin[order]
        ends = [*starts[1:].tolist(), len(order)]
        builder = learner.builder
        found = {}
        for k, start in enumerate(starts.tolist()):
            if same[k]:
                self.sites.append(origin[start : ends[k]])
                utility = builder.utility(self.utility, float(earned[start]), float(weight[k]))
                site = builder.latent(len(self.sites) - 1)
                found[int(codes[order[start]])] = builder.product([utility, site])
                learner.report_done(float(weight[k]))
        return found

    def _outcome(
        self, learner: Learner, rows: Rows, names: tuple[str, ...], depth: int
    ) -> list[int]:
        """Add some variables and the successor; return the factors."""
        varying = tuple(rows.varying(names))
        constant = learner.leaves(rows, [name for name in names if name not in varying])
        if not varying:
            return [*constant, self._site(learner, rows)]
        return [*constant, *self._varying(learner, rows, varying, depth)]

    def _varying(
        self, learner: Learner, rows: Rows, names: tuple[str, ...], depth: int
    ) -> list[int]:
        """Add variables with several values each, and the successor beside or below them."""
        if learner.out_of_budget(depth):
            return [*learner.leaves(rows, names), self._site(learner, rows)]
        strata = np.zeros(len(rows), dtype=np.int64)
        among = learner.test(rows, names, (*names, *self.after), strata).dependent
        groups = components((*names, ""), _with_successor(among, len(names)))
        led = next(group for group in groups if "" in group)[:-1]  # those the successor depends on
        factors = [grow_spn(learner, rows, group, depth) for group in groups if "" not in group]
        if not led:
            return [*factors, self._site(learner, rows)]
        targets = Targets((Target((*led, *self.after), strata),), ())
        clusters = learner.config.clustering(rows, led, targets, learner.rng)
        if len(clusters) < 2:  # nothing is left to divide by
            return [*factors, *learner.leaves(rows, led), self._site(learner, rows)]
        clusters = with_missing_cluster(rows, clusters, led)
        children = [
            learner.product(self._outcome(learner, part, led, depth + 1)) for part in clusters
        ]
        return [*factors, learner.mixture(clusters, children)]

    def _site(self, learner: Learner, rows: Rows) -> int:
        """Mark a place for an S_L."""
        self.sites.append(rows.origin)
        return learner.builder.latent(len(self.sites) - 1)


def _with_successor(dependent: Bools, count: int) -> Bools:
    """Return a square table in which the last variable is the successor as a whole."""
    square = np.zeros((count + 1, count + 1), dtype=bool)
    square[:count, :count] = dependent[:, :count]
    square[:count, count] = dependent[:, count:].any(axis=1)
    return square
