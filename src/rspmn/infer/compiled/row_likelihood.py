"""Likelihood of many rows of a single-shot model at once, smoothed so that none is impossible."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rspmn.circuit import Distribution, Leaf
from rspmn.circuit.distributions import as_numbers
from rspmn.data.columns import encode
from rspmn.data.tables import as_table
from rspmn.infer.compiled.layers import compile_likelihood
from rspmn.infer.compiled.leaf_tables import Distinct
from rspmn.spmn import SPMN
from rspmn.types import Array
from rspmn.values import Value


def log_likelihood_of_rows(model: SPMN, source: object) -> Array:
    """Return the log-likelihood of each row of a table, given its decisions.

    Smoothing, so that no row is impossible for a learned model: its background, in which variables
    have nothing to do with each other and values that were never seen have a little probability,
    is mixed in with the weight of one row, P = (n · P_model + P_background)/(n + 1). Of a value
    that was never seen in any row the model itself knows as little as of a missing one; such a
    value counts with its probability in the background.
    """
    names = [n for n in model.schema.variables if n != model.schema.utility]
    table = as_table(source)
    columns = {}
    for name in names:
        cells = table.cells(name)
        column = encode(cells.present, cells.missing, model.schema.kinds.get(name), name)
        columns[name] = Distinct.of(column)
    network = compile_likelihood(model.network)
    if model.background is None:
        return np.asarray(network(columns, table.rows)[0])
    apart: dict[str, Array] = {}  # of each variable, in the background
    new = np.zeros(table.rows)  # of values that were never seen
    for leaf in model.background.nodes:
        if isinstance(leaf, Leaf):
            seen = columns[leaf.variable]
            logs = leaf.distribution.log_probs(seen.values)
            smoothed = seen.each(_smoothed(leaf.distribution, seen.values, logs, model.rows))
            is_new = seen.each(np.isneginf(logs)) > 0
            apart[leaf.variable] = smoothed
            new += np.where(is_new, smoothed, 0.0)
            columns[leaf.variable] = replace(seen, codes=np.where(is_new, -1, seen.codes))
    own = network(columns, table.rows)[0] + new
    share = 1 / (model.rows + 1)
    background = np.sum(list(apart.values()), axis=0)
    return np.asarray(np.logaddexp(own + np.log1p(-share), background + math.log(share)))


def _smoothed(
    distribution: Distribution, values: Sequence[Value], logs: Array, rows: float
) -> Array:  # [values]
    """Return the log-probability of each value, with some probability for values never seen.

    Of listed values, each value, and a new one, counts as seen once more than it was. Of numbers, a
    Cauchy density of the same centre and spread has the weight of one row. `logs` are the
    log-probabilities without smoothing.
    """
    seen = np.exp(logs) * rows
    atoms = distribution.atoms()
    if atoms is not None:
        return np.log((seen + 1) / (rows + len(atoms) + 1))
    spread = math.sqrt(distribution.variance())
    away = (as_numbers(values) - distribution.mean()) / spread
    return np.log((seen + 1 / (math.pi * spread * (1 + away * away))) / (rows + 1))
