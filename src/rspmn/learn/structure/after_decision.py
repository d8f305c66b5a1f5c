"""What follows the last decision of a step: the last set, the utility, and the successor.

LearnSPN (Sec. 4, Step 1) in which the successor is treated as one variable. Its place in the
one-step network is a latent with a number of its own, and `sites` holds the windows behind each
number. Step 3 puts an S_L there.
"""

from collections.abc import Sequence

import numpy as np

from rspmn.circuit.blocks import BlockBuilder
from rspmn.learn.structure.grow import with_missing_cluster
from rspmn.learn.structure.independence import components
from rspmn.learn.structure.learn_spn import grow_spn
from rspmn.learn.structure.learner import Learner
from rspmn.learn.structure.rows import Rows
from rspmn.learn.structure.targets import Later, Targets
from rspmn.types import Array, Bools, Ints


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

    def certain(self, learner: Learner, rows: Rows, starts: Ints) -> dict[int, int]:
        """Add the utility and the successor of decisions with a constant utility."""
        sites, earned, weight = self._constant(rows, starts)
        builder, found = learner.builder, {}
        for site, k in enumerate(sites.tolist(), len(self.sites)):
            utility = builder.utility(self.utility, float(earned[k]), float(weight[k]))
            found[k] = builder.product([utility, builder.latent(site)])
            learner.report_done(float(weight[k]))
        self._record(rows, starts, sites)
        return found

    def certain_blocks(self, builder: BlockBuilder, rows: Rows, starts: Ints) -> Ints:  # [groups]
        """Add the utility and the successor of groups of rows with a constant utility.

        Groups start at some rows. Returned are the nodes, -1 of all other groups.
        """
        sites, earned, weight = self._constant(rows, starts)
        utilities = builder.utilities(
            self.utility, earned[sites], weight[sites], np.zeros(len(sites))
        )
        latents = builder.latents(len(self.sites) + np.arange(len(sites)))
        self._record(rows, starts, sites)
        both = np.column_stack([utilities, latents]).ravel()
        found = np.full(len(starts), -1)
        found[sites] = builder.products(np.full(len(sites), 2), both)
        return found

    def _constant(self, rows: Rows, starts: Ints) -> tuple[Ints, Array, Array]:
        """Return the groups of a constant utility; and utility and weight of all groups."""
        column = rows.table.columns[self.utility]
        earned = column.data[rows.index]
        same = np.minimum.reduceat(earned, starts) == np.maximum.reduceat(earned, starts)
        if column.spread is not None:
            same &= np.maximum.reduceat(column.spread[rows.index], starts) == 0
        return np.flatnonzero(same), earned[starts], np.add.reduceat(rows.weights, starts)

    def _record(self, rows: Rows, starts: Ints, groups: Ints) -> None:
        """Record the windows of some groups, each behind a place for an S_L."""
        origin, stops = rows.origin, np.append(starts[1:], len(rows))
        parts = zip(starts[groups].tolist(), stops[groups].tolist(), strict=True)
        self.sites += [origin[start:stop] for start, stop in parts]

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
        strata = rows.together
        among = learner.test(rows, names, (*names, *self.after), strata).dependent
        groups = components((*names, ""), _with_successor(among, len(names)))
        led = next(group for group in groups if "" in group)[:-1]  # those the successor depends on
        factors = [grow_spn(learner, rows, group, depth) for group in groups if "" not in group]
        if not led:
            return [*factors, self._site(learner, rows)]
        targets = Targets((Later((*led, *self.after), strata),), ())
        clusters = learner.config.clustering(rows, led, targets, learner.rng)
        if len(clusters) < 2:  # nothing is left to divide by
            return [*factors, *learner.leaves(rows, led), self._site(learner, rows)]
        clusters = with_missing_cluster(rows, clusters, led)
        children = [
            learner.product(self._outcome(learner, part, led, depth + 1)) for part in clusters
        ]
        return [*factors, learner.mixture([part.total for part in clusters], children)]

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
