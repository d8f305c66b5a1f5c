"""The density of a table: independent groups of variables, each a mixture of latent trees."""

import math
import time
from collections.abc import Sequence

import numpy as np

from rspmn.circuit import Network, NetworkBuilder
from rspmn.data.tables import as_table
from rspmn.learn.config import LearnInfo, Progress, Report
from rspmn.learn.density.circuit import add_tree
from rspmn.learn.density.config import LatentTrees
from rspmn.learn.density.start import first_tree
from rspmn.learn.density.stepwise_em import fit_tree
from rspmn.learn.density.symbols import Symbols, split
from rspmn.learn.structure.independence import components, pair_statistics
from rspmn.learn.structure.leaves import check_families, on_number_lines
from rspmn.learn.structure.rows import read_columns
from rspmn.learn.structure.smoothed_leaves import SmoothedLeaves
from rspmn.types import Array, Bools

#: Numbers are in at most so many bins, and in √n/2 of them if there are n rows.
MOST_BINS, LEAST_BINS = 32, 4
#: With n rows, a hidden variable has at most this many times √n states.
STATES = 0.4


def learn_density(
    source: object,
    names: Sequence[str] | None,
    config: LatentTrees,
    rng: np.random.Generator,
    report: Report | None = None,
) -> tuple[Network, LearnInfo]:
    """Learn the joint distribution of the columns of a table as a mixture of latent trees."""
    return _Density(source, names, config, rng, report).learn()


class _Density:
    """A run of density estimation."""

    def __init__(
        self,
        source: object,
        names: Sequence[str] | None,
        config: LatentTrees,
        rng: np.random.Generator,
        report: Report | None,
    ) -> None:
        self.started = time.monotonic()
        self.config, self.rng, self.report = config, rng, report
        table = as_table(source)
        bins = int(np.clip(math.sqrt(table.rows) / 2, LEAST_BINS, MOST_BINS))
        rows = read_columns(table, names, bins)
        check_families(config.leaves, rows.table)
        self.names = tuple(rows.table.columns)
        self.rows = on_number_lines(rows, self.names, config.leaves)
        self.builder = NetworkBuilder()
        self.info = LearnInfo(rows=rows.total, distinct_rows=len(rows))
        self.done = 0.0  # rows
        self.deadline = math.inf
        if config.max_seconds is not None:
            self.deadline = self.started + config.max_seconds

    def learn(self) -> tuple[Network, LearnInfo]:
        """Return the network: a product of groups."""
        linked, strength = self._dependences()
        parts = []
        for group in components(range(len(self.names)), linked):
            parts.append(self._group(group, strength[np.ix_(group, group)]))
            self._report_done(len(group) / len(self.names))
        root = parts[0] if len(parts) == 1 else self.builder.product(parts)
        network = self.builder.build(root)
        info = self.info
        info.nodes, info.edges = len(network), network.num_edges
        info.seconds = time.monotonic() - self.started
        return network, info

    def _dependences(self) -> tuple[Bools, Array]:
        """Return which pairs of variables are linked, and how strongly each depends on each."""
        names = self.names
        found = pair_statistics(self.rows, names, names, np.zeros(len(self.rows), dtype=np.int64))
        self.info.tests += len(names) ** 2
        linked = found.p_values() < self.config.alpha / len(names)
        strength = np.asarray(np.maximum(found.g - found.freedom, 0.0))
        np.fill_diagonal(strength, 0.0)
        return linked, strength

    def _group(self, group: Sequence[int], strength: Array) -> int:
        """Add the distribution of variables that depend on each other."""
        names = [self.names[i] for i in group]
        leaves = [SmoothedLeaves(self.rows, name, self.config.leaves) for name in names]
        if len(group) == 1:
            return leaves[0].add_whole(self.builder)
        symbols = Symbols.of(self.rows, names)
        trees: list[int] = []
        for number in range(self.config.trees):
            if trees and time.monotonic() >= self.deadline:
                self.info.stopped_by = "seconds"
                break
            trees.append(self._tree(symbols, strength, leaves, vary=number > 0))
        return self.builder.sum(trees, [1 / len(trees)] * len(trees))

    def _tree(
        self, symbols: Symbols, strength: Array, leaves: Sequence[SmoothedLeaves], vary: bool
    ) -> int:
        """Estimate a latent tree and add it."""
        rows, held_out = split(symbols, self.config.held_out, self.rng)
        states = min(self.config.states, max(2, round(STATES * math.sqrt(self.info.rows))))
        tree = first_tree(rows, strength, states, vary, self.rng)
        tree, run = fit_tree(tree, rows, held_out, self.config.pseudo_rows, self.rng, self.deadline)
        if time.monotonic() >= self.deadline:
            self.info.stopped_by = "seconds"
        self.info.sums += 1 + states * (len(tree.order) - 1)
        return add_tree(self.builder, tree, run.counts, leaves, symbols.starts, run.pseudo_rows)

    def _report_done(self, share: float) -> None:
        self.done += share * self.info.rows
        if self.report is not None:
            seconds = time.monotonic() - self.started
            self.report(Progress(self.done, self.info.rows, len(self.builder), seconds))
