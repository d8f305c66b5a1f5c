"""The SPMN of whole sequences (Sec. 6), the paper's baseline: every step has its own variables.

 Episodes are padded to one length, so each is one row; the utility is
what the whole episode earns.
"""

from collections.abc import Sequence

import numpy as np

from rspmn.circuit.rewrite import at_step
from rspmn.data.episodes import Episodes
from rspmn.errors import DataError
from rspmn.learn import LearnConfig, LearnInfo, learn_spmn
from rspmn.learn.config import Report
from rspmn.schema import Schema
from rspmn.spmn import SPMN


def learn_sequence_spmn(
    log: Episodes,
    config: LearnConfig | None = None,
    rng: np.random.Generator | int = 0,
    *,
    report: Report | None = None,
) -> tuple[SPMN, LearnInfo]:
    """Learn one network of all steps. Set a budget: it grows exponentially with the steps.

    >>> from rspmn.envs.grid_universe import grid_universe
    >>> log = grid_universe().generate(episodes=300, horizon=3, rng=0, layout="padded")
    >>> model, info = learn_sequence_spmn(log, LearnConfig(max_nodes=2000))
    >>> model.schema.decisions
    ('action@0', 'action@1', 'action@2')
    >>> round(model.meu(), 9)  # three moves at -1
    -3.0
    """
    lengths = log.lengths
    if len(np.unique(lengths)) != 1:
        raise DataError(
            f"a network of whole sequences needs episodes of one length, found {lengths.min()} to "
            f"{lengths.max()}: pad them with their last states"
        )
    steps, schema = int(lengths[0]), log.schema
    table: dict[str, object] = {}
    kinds = {}
    for t in range(steps):
        for name in schema.variables:
            if name != schema.utility:
                column = log.columns[name].take(log.offsets[:-1] + t)
                table[at_step(name, t)] = _cells(column.decode())
                kinds[at_step(name, t)] = column.kind
    earned = log.columns[schema.utility].data
    table[schema.utility] = np.add.reduceat(earned, log.offsets[:-1])
    order = [[at_step(name, t) for name in group] for t in range(steps) for group in schema.order]
    decisions = [at_step(name, t) for t in range(steps) for name in schema.decisions]
    whole = Schema(order, decisions, schema.utility, kinds)
    return learn_spmn(table, whole, config, rng, report=report)


def _cells(values: Sequence[object]) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found
