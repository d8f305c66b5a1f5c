"""LearnSPMN (Melibari et al.) on weighted rows: a network from a table of past decisions.

`rspmn.learn.structure.grow` is the recursion along the order of the schema. The last information
set and the utility are left to LearnSPN.
"""

import numpy as np

from rspmn.availability import NeverTaken
from rspmn.learn.config import LearnConfig, LearnInfo, Report
from rspmn.learn.never_taken import never_taken
from rspmn.learn.structure.grow import Codes, grow_spmn
from rspmn.learn.structure.laws import law_columns
from rspmn.learn.structure.learn_spn import grow_spn
from rspmn.learn.structure.learner import Learner
from rspmn.learn.structure.leaves import on_number_lines
from rspmn.learn.structure.rows import Rows, read_rows, with_columns
from rspmn.schema import Schema
from rspmn.spmn import SPMN


def learn_spmn(
    source: object,
    schema: Schema,
    config: LearnConfig | None = None,
    rng: np.random.Generator | int = 0,
    *,
    weights: str | None = None,
    report: Report | None = None,
) -> tuple[SPMN, LearnInfo]:
    """Learn a sum-product-max network from a table of past decisions.

    Parameters
    ----------
    source
        A pandas, Polars or PyArrow table or a mapping of names to arrays: one row per decision
        problem, with the variables of the schema.
    schema
        The variables, in the order in which they become known.
    config
        How to learn; `LearnConfig()` if not given.
    rng
        A generator or seed, for tests and clusterings that draw at random.
    weights
        A column that says how often each row occurred.
    report
        A progress callback; it is called with a `Progress`.

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
    rows = with_columns(rows, law_columns(known, rows.table.columns, rows.weights))
    rows = on_number_lines(rows, known.state_variables, config.leaves)
    learner = Learner(config, np.random.default_rng(rng), rows, known.utility, report)
    root = grow_spmn(learner, known, rows, _SingleOutcome(known.utility))
    network = learner.builder.build(root)
    info = learner.info
    info.nodes, info.edges, info.seconds = len(network), network.num_edges, learner.seconds()
    independent = learner.builder.product(learner.leaves(rows, known.state_variables))
    background = learner.builder.build(independent)
    never: tuple[NeverTaken, ...] = ()
    if config.availability == "declared":
        here = np.zeros(len(rows), dtype=np.int64)
        never = never_taken(rows, known, here, 1, config.unavailable_from)
    return SPMN(known, network, background, rows.total, never), info


class _SingleOutcome:
    """What follows the last decision of a single-shot problem: the last set and the utility."""

    def __init__(self, utility: str) -> None:
        self.utility = utility
        self.beyond = (utility,)
        self.recurs = False

    def __call__(self, learner: Learner, rows: Rows, names: tuple[str, ...], depth: int) -> int:
        return grow_spn(learner, rows, (*names, self.utility), depth)

    def certain(self, learner: Learner, rows: Rows, codes: Codes) -> dict[int, int]:
        """Return nothing: all values are added one by one."""
        del learner, rows, codes
        return {}
