"""LearnSPMN (Melibari et al.) on weighted rows: a network from a table of past decisions.

`rspmn.learn.structure.grow` is the recursion along the order of the schema. The last information
set and the utility are left to LearnSPN.
"""

import time
from dataclasses import replace

import numpy as np

from rspmn.circuit import Network
from rspmn.learn.behaviour import learn_behaviour
from rspmn.learn.config import LearnConfig, LearnInfo, Report, progress_bar
from rspmn.learn.never_taken import never_taken
from rspmn.learn.structure.grow import grow_spmn
from rspmn.learn.structure.learn_spn import grow_spn
from rspmn.learn.structure.learner import SECONDS_PER_VALUE, Learner
from rspmn.learn.structure.leaves import on_number_lines, shrunk_utilities
from rspmn.learn.structure.rows import Rows, read_rows, with_columns
from rspmn.learn.structure.targets import law_columns
from rspmn.schema import Schema
from rspmn.spmn import SPMN
from rspmn.types import Ints

#: How usual a context is, is told to one part in so many, by at most so many logged contexts.
QUANTILES = 101
MOST_CONTEXTS = 2_000
#: About the seconds that a node takes after it was grown; growth leaves them.
AFTER_GROWTH = 1e-4


def learn_spmn(
    source: object,
    schema: Schema,
    config: LearnConfig | None = None,
    rng: np.random.Generator | int = 0,
    *,
    weights: str | None = None,
    report: Report | None = None,
    progress: bool | None = None,
) -> tuple[SPMN, LearnInfo]:
    """Learn a sum-product-max network from a table of past decisions.

    Parameters
    ----------
    source
        A pandas, Polars or PyArrow table or a mapping of names to arrays: one row per decision
        problem, with the variables of the schema.
    schema
        The variables, in the order in which they are observed.
    config
        The settings; `LearnConfig()` by default.
    rng
        A random generator or a seed, for randomised tests and clusterings.
    weights
        A column with the number of times that each row occurred.
    report
        A progress callback, called with a `Progress`.
    progress
        Whether to show a progress bar; by default on a terminal and in notebooks.

    Examples
    --------
    >>> table = {"weather": ["wet", "wet", "dry", "dry"] * 50,
    ...          "umbrella": [True, False, True, False] * 50,
    ...          "mood": [0.0, -5.0, 1.0, 2.0] * 50}
    >>> schema = Schema([["weather"], ["umbrella"]], ["umbrella"], "mood")
    >>> model, info = learn_spmn(table, schema)
    >>> model.meu()                                   # half the time 0, half the time 2
    1.0 (from 100 logged steps)
    >>> [best.value for best in model.best_decisions({"weather": "wet"})]
    [True]
    """
    config = config or LearnConfig()
    rows, known = read_rows(source, schema, config.bins, weights)
    return learn_rows(rows, known, config, rng, report=report, progress=progress)


def learn_rows(
    rows: Rows, known: Schema, config: LearnConfig, rng: np.random.Generator | int = 0,
    *, report: Report | None = None, progress: bool | None = None,
) -> tuple[SPMN, LearnInfo]:  # fmt: skip
    """Learn from distinct rows with weights; `known`: the schema with all kinds."""
    rows = with_columns(rows, law_columns(known, rows.table.columns, rows.weights))
    rows = on_number_lines(rows, known.state_variables, config.leaves)
    started, rng = time.monotonic(), np.random.default_rng(rng)
    config = config.reserving(SECONDS_PER_VALUE * len(rows) * len(rows.table.columns))
    grown = rows.with_open_ends(known.state_variables) if config.classes is None else rows
    half = config.reserving((config.max_seconds or 0.0) / 2).deadline(started)
    from rspmn.learn.structure.held_out import Trials

    trials = Trials(_learned, grown, known, config, rng, half)
    if config.classes is None:
        config = replace(config, classes=trials.best_classes())
    with progress_bar(progress, report) as shown:
        learner, root = _learned(grown, known, config, rng, shown, started)
    network = learner.builder.build(root)
    info = learner.info
    info.nodes, info.edges, info.seconds = len(network), network.num_edges, learner.seconds()
    info.classes = config.classes or 0
    independent = learner.builder.product(learner.leaves(rows, known.state_variables))
    background = learner.builder.build(independent)
    never = never_taken(rows, known, np.zeros(len(rows), dtype=np.int64), 1)
    columns = {name: rows.column(name) for name in known.variables}
    behaviour = learn_behaviour(columns, rows.weights, known, config.deadline(started))
    usual = _usual_contexts(network, known, rows, rng)
    earned = rows.numbers(known.utility)
    ends: tuple[float, ...] = (float(earned.min()), float(earned.max()))
    held = trials.held_out(config.classes or 0) if config.clustering.disjoint else None
    overlap = bool(config.classes) and trials.are_needed
    if not config.clustering.disjoint or (overlap and held is None):
        ends = ()  # a plan for each part would be worth more than any for contexts
    return SPMN(known, network, background, rows.total, never, usual, ends, held, behaviour), info


def _learned(
    rows: Rows, schema: Schema, config: LearnConfig, rng: np.random.Generator,
    report: Report | None = None, started: float | None = None,
) -> tuple[Learner, int]:  # fmt: skip
    """Learn a network; return what built it, and its root."""
    learner = Learner(config, rng, rows, schema.utility, report, started, AFTER_GROWTH)
    return learner, grow_spmn(learner, schema, rows, SingleOutcome(schema.utility))


def _usual_contexts(
    network: Network, schema: Schema, rows: Rows, rng: np.random.Generator
) -> tuple[float, ...]:
    """Return the log-likelihoods of contexts before the first decision, at quantiles."""
    from rspmn.infer.compiled.decisions import CompiledDecision

    if not schema.decisions or not CompiledDecision.serves(network, schema.decisions[0]):
        return ()
    if len(rows) > MOST_CONTEXTS:
        rows = rows.where(np.sort(rng.choice(len(rows), MOST_CONTEXTS, replace=False)))
    compiled = CompiledDecision(network, schema.decisions[0])
    columns = {name: rows.column(name) for name in schema.information_sets[0]}
    whole = ~np.any([np.zeros(len(rows), bool), *(c.missing for c in columns.values())], axis=0)
    logs = compiled(compiled.contexts(columns, len(rows))).log_likelihood
    used = np.flatnonzero(whole & np.isfinite(logs))
    order = used[np.argsort(logs[used], kind="stable")]
    if not len(order):
        return ()
    below = np.cumsum(rows.weights[order])
    at = np.searchsorted(below, np.linspace(0, below[-1], QUANTILES) * (1 - 1e-12))
    return tuple(logs[order][at].tolist())


class SingleOutcome:
    """What follows the last decision of a single-shot problem: the last set and the utility."""

    def __init__(self, utility: str) -> None:
        self.utility = utility
        self.beyond = (utility,)
        self.recurs = False

    def __call__(self, learner: Learner, rows: Rows, names: tuple[str, ...], depth: int) -> int:
        """Add the last set and the utility."""
        return grow_spn(learner, rows, (*names, self.utility), depth)

    def certain(self, learner: Learner, rows: Rows, starts: Ints) -> dict[int, int]:
        """Add the utilities of all values, shrunk towards what is known of their means."""
        if rows.table.prior is None and not learner.config.shrink:
            return {}
        number = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(rows))))
        found = shrunk_utilities(rows, number, self.utility)
        learner.report_done(rows.total)
        return {k: learner.builder.add(utility) for k, utility in found.items()}
