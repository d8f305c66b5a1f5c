"""The density of a table: independent groups of variables, each a mixture of latent trees.

Trees are fitted by stepwise expectation maximisation: parameters change every few hundred rows.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from rspmn.circuit import Network, NetworkBuilder
from rspmn.data.tables import as_table
from rspmn.learn.config import LatentTrees, LearnInfo, Progress, Report
from rspmn.learn.density.latent_tree import ExpectedCounts, LatentTree, Singles, first_tree
from rspmn.learn.density.symbols import CHUNK, Symbols, split
from rspmn.learn.structure.independence import PairStatistics, components, pair_statistics
from rspmn.learn.structure.leaves import SmoothedLeaves, check_families, on_number_lines
from rspmn.learn.structure.rows import read_columns
from rspmn.types import Array, Bools, Ints

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


#: Numbers are in at most so many bins, and in √n/2 of them if there are n rows.
MOST_BINS, LEAST_BINS = 32, 4
#: Groups of variables are merged at most so many times; later rounds add single variables.
ROUNDS = 6
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
        groups, strength = self._groups()
        parts = []
        for group in groups:
            parts.append(self._group(group, strength[np.ix_(group, group)]))
            self._report_done(len(group) / len(self.names))
        root = parts[0] if len(parts) == 1 else self.builder.product(parts)
        network = self.builder.build(root)
        info = self.info
        info.nodes, info.edges = len(network), network.num_edges
        info.seconds = time.monotonic() - self.started
        return network, info

    def _groups(self) -> tuple[list[tuple[int, ...]], Array]:
        """Return independent groups of variables, and how strongly each depends on each."""
        names = self.names
        found = pair_statistics(self.rows, names, names, np.zeros(len(self.rows), dtype=np.int64))
        self.info.tests += len(names) ** 2
        strength = np.asarray(np.maximum(found.g - found.freedom, 0.0))
        np.fill_diagonal(strength, 0.0)
        return dependent_groups(found, self.config.alpha), strength

    def _group(self, group: Sequence[int], strength: Array) -> int:
        """Add the distribution of variables that depend on each other."""
        names = [self.names[i] for i in group]
        leaves = [SmoothedLeaves(self.rows, name, self.config.leaves) for name in names]
        if len(group) == 1:
            return leaves[0].add_whole(self.builder)
        symbols = Symbols.of(self.rows, names)
        trees: list[int] = []
        for number in range(self.config.trees):
            if number and time.monotonic() >= self.deadline:
                self.info.stopped_by = "seconds"
                break
            trees += self._tree(symbols, strength, leaves, vary=number > 0)
        if not trees:
            return self.builder.product([leaf.add_whole(self.builder) for leaf in leaves])
        self.info.sums += len(trees) > 1  # one tree alone needs none
        return self.builder.sum(trees, [1 / len(trees)] * len(trees))

    def _tree(
        self, symbols: Symbols, strength: Array, leaves: Sequence[SmoothedLeaves], vary: bool
    ) -> list[int]:
        """Estimate a latent tree and add it, if it is better than independence."""
        rows, held_out = split(symbols, self.config.held_out, self.rng)
        states = min(self.config.states, max(2, round(STATES * math.sqrt(self.info.rows))))
        tree = first_tree(rows, strength, states, vary, self.rng)
        tree, run = fit_tree(tree, rows, held_out, self.config.pseudo_rows, self.rng, self.deadline)
        if time.monotonic() >= self.deadline:
            self.info.stopped_by = "seconds"
        if run.held_out <= held_out.independent_log_likelihood():
            return []
        self.info.sums += 1 + states * (len(tree.order) - 1)
        starts = symbols.starts
        return [add_tree(self.builder, tree, run.counts, leaves, starts, run.pseudo_rows)]

    def _report_done(self, share: float) -> None:
        self.done += share * self.info.rows
        if self.report is not None:
            seconds = time.monotonic() - self.started
            self.report(Progress(self.done, self.info.rows, len(self.builder), seconds))


def dependent_groups(found: PairStatistics, alpha: float) -> list[tuple[int, ...]]:
    """Return groups of variables that are independent of each other, from the tests of all pairs.

    Two groups are merged if all pairs between them together depend more than chance explains, at
    the level alpha divided by the number of groups. A group that depends on all others together is
    merged with the one it depends on most: variables that depend a little on many others belong
    together, though no single pair may show it.
    """
    groups: list[tuple[int, ...]] = [(k,) for k in range(len(found.g))]
    for _ in range(ROUNDS):
        order = np.concatenate(groups)
        starts = np.cumsum([0, *map(len, groups)])[:-1]
        apart = 1 - np.eye(len(groups))
        between = PairStatistics(*(
            apart * np.add.reduceat(np.add.reduceat(each[order], starts)[:, order], starts, axis=1)
            for each in _parts(found)
        ))  # fmt: skip
        # p-values take long: only where a statistic is a deviation above its mean by chance
        linked = between.x2 > between.freedom + np.sqrt(2 * between.freedom)
        linked[linked] = _where(between, linked).p_values() < alpha / len(groups)
        others = PairStatistics(*(part.sum(axis=1) for part in _parts(between)))
        alone = np.flatnonzero(others.p_values() < alpha / len(groups))
        excess = (between.x2 - between.freedom) / np.sqrt(np.maximum(between.freedom, 1.0))
        linked[alone, np.where(apart > 0, excess, -np.inf)[alone].argmax(axis=1)] = True
        merged = components(groups, linked)
        if len(merged) == len(groups):
            break
        groups = [tuple(sorted(chain.from_iterable(parts))) for parts in merged]
    return groups


def _parts(statistics: PairStatistics) -> tuple[Array, Array, Array, Array]:
    return statistics.g, statistics.x2, statistics.freedom, statistics.weight


def _where(statistics: PairStatistics, chosen: Bools) -> PairStatistics:
    return PairStatistics(*(part[chosen] for part in _parts(statistics)))


def add_tree(
    builder: NetworkBuilder,
    tree: LatentTree,
    counts: ExpectedCounts,
    leaves: Sequence[SmoothedLeaves],
    starts: Ints,
    pseudo_rows: float,
) -> int:
    """Add a latent tree: a product for each state, a sum for each state of the parent.

    `leaves` are those of each variable, and `starts` its first symbol.
    """
    sums: dict[int, list[int]] = {}
    states: list[int] = []
    for i in tree.order[::-1].tolist():
        here = counts.symbols[:, starts[i] : starts[i + 1]]
        states = [leaves[i].add(builder, row, pseudo_rows) for row in here.astype(np.float64)]
        if tree.children[i]:
            below = zip(states, *(sums[child] for child in tree.children[i]), strict=True)
            states = [builder.product(parts) for parts in below]
        if tree.parent[i] >= 0:
            sums[i] = [builder.sum(states, row) for row in _normalised(tree.edges[i])]
    return builder.sum(states, _normalised(tree.start[None])[0])


def _normalised(weights: Singles) -> list[list[float]]:
    """Return rows of weights that sum to 1 in double precision."""
    exact = weights.astype(np.float64)
    found: list[list[float]] = (exact / exact.sum(axis=1, keepdims=True)).tolist()
    return found
