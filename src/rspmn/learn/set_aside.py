"""Variables of the state that are set aside: left out of learning, then put back as factors.

Interface nodes do not differ by them. Each node has their distribution, so that the model still
describes whole steps, and a state is found whatever their values are.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rspmn.circuit import Categorical, Leaf, NetworkBuilder, Product, StudentT
from rspmn.circuit.rewrite import graft
from rspmn.data.keys import group_weights
from rspmn.data.windows import Windows, distinct_states, group_windows
from rspmn.infer.compiled.assign import locate
from rspmn.learn.structure.independence import PairStatistics, stratum_statistics
from rspmn.learn.structure.leaves import Families, asked_family, fit_leaf
from rspmn.learn.structure.rows import Rows
from rspmn.learn.two_step import TwoSteps
from rspmn.model import RSPMN
from rspmn.schema import Schema
from rspmn.types import Array, Ints
from rspmn.values import END, UNKNOWN, Mark

#: Interface nodes have leaves of their own if nodes times values are at most so many.
MOST_CELLS = 4_000_000
#: The level at which a variable that was set aside is found to depend on the interface node.
LEVEL = 0.001


def without_variables(windows: Windows, names: Sequence[str]) -> Windows:
    """Return the windows of the same log without some variables of the state."""
    return group_windows(_narrowed(windows, names)) if names else windows


def _narrowed(windows: Windows, names: Sequence[str]) -> Windows:
    """Return the same windows without some variables; equal ones are not added up."""
    schema = windows.schema
    order = [[name for name in group if name not in names] for group in schema.order]
    kinds = {name: kind for name, kind in schema.kinds.items() if name not in names}
    return replace(
        windows,
        schema=Schema(
            filter(None, order),
            schema.decisions,
            schema.utility,
            kinds,
            schema.log,
            schema.available,
        ),
        columns={n: c for n, c in windows.columns.items() if n not in names},
        next_columns={n: c for n, c in windows.next_columns.items() if n not in names},
    )


def nodes_of_steps(model: RSPMN, windows: Windows, names: Sequence[str]) -> Ints:  # [num_windows]
    """Return the interface node of each window's step, in a model learned without some names."""
    return locate(model, distinct_states(_narrowed(windows, names))).of_steps()


def put_back(
    model: RSPMN, two: TwoSteps, names: Sequence[str], here: Ints, families: Families
) -> RSPMN:
    """Return a model with leaves for variables that it was learned without.

    Parameters
    ----------
    model
        The model.
    two
        The log, with the variables.
    names
        The variables.
    here
        The interface node of each window's step. [num_windows]
    families
        Families of leaves that were asked for.
    """
    builder = NetworkBuilder()
    placed = graft(builder, model.template, rename=None, latent=builder.latent)
    here = here[two.rows.origin]
    leaves = [_leaves(two.rows, name, here, model.num_interfaces, families) for name in names]
    roots = []
    for number, root in enumerate(model.template.roots):
        mark = {model.end: END, model.unknown: UNKNOWN}.get(number)
        added = [
            builder.add(_marked(name, mark) if mark else of_nodes[number])
            for name, of_nodes in zip(names, leaves, strict=True)
        ]
        kept = placed[root]
        assert kept is not None, "a root has variables of its own"
        top = model.template.nodes[root]
        below = [placed[c] for c in top.children] if isinstance(top, Product) else [kept]
        roots.append(builder.product([*added, *(b for b in below if b is not None)]))
    template = builder.build(*roots)
    # A copy has the same outcomes in the same order: the counts still fit.
    return RSPMN(two.schema, model.top, template, model.visits, model.untried, counts=model.counts)


def _marked(name: str, mark: Mark) -> Leaf:
    return Leaf(name, Categorical.certain(mark))


def _leaves(
    rows: Rows, name: str, here: Ints, nodes: int, families: Families
) -> list[Leaf]:  # [nodes]
    """Return the distribution of a variable in each interface node.

    It is that of all steps, unless it depends on the node. Then that of the node's steps and,
    with the weight of one step, of all: so no value is impossible in a node. Nor is one that was
    never seen: numbers have tails, and categories that are not listed a small probability.
    """
    values = rows.column(name)
    if name in rows.table.ordered and asked_family(families, name, values.kind) is None:
        families = {**families, name: StudentT}
    known = np.flatnonzero((here >= 0) & ~values.missing)
    distinct, value = np.unique(values.data[known], return_inverse=True)
    codes = rows.codes(name)[known].astype(np.int64)
    if nodes * len(distinct) > MOST_CELLS or not _depend(codes, here[known], rows.weights[known]):
        return [_open_leaf(rows, name, families)] * nodes
    first = np.zeros(len(distinct), dtype=np.int64)
    first[value] = known
    cells = here[known] * len(distinct) + value
    table: Array = group_weights(cells, rows.weights[known], nodes * len(distinct))
    table = table.reshape(nodes, len(distinct))
    background = table.sum(axis=0) / table.sum()
    return [
        _open_leaf(Rows(rows.table, rows.index[first], own + background), name, families)
        for own in table
    ]


def _open_leaf(rows: Rows, name: str, families: Families) -> Leaf:
    """Return a distribution from n rows, with 1/(n + 1)² for categories that are not listed."""
    share = 1 / (1 + rows.total) ** 2
    return Leaf(name, fit_leaf(rows, name, families).distribution.opened(share))


def _depend(one: Ints, other: Ints, weights: Array) -> bool:
    """Return whether two variables depend on each other."""
    statistics = stratum_statistics(np.zeros(len(one), dtype=np.int64), one, other, weights)
    return bool(PairStatistics(*statistics).p_values()[0] < LEVEL)
