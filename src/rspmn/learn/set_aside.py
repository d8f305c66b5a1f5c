"""Variables of the state that are set aside: left out of learning, then put back as factors.

Interface nodes do not differ by them. Each node has their distribution, so that the model still
describes whole steps, and a state is found whatever their values are. A model remembers their
names. To estimate it again they are taken out, and put back afterwards.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from rspmn.behaviour import UNKNOWN_BEHAVIOUR
from rspmn.circuit import Categorical, Leaf, Network, Product, StudentT
from rspmn.circuit.blocks import BlockBuilder
from rspmn.circuit.node_arrays import KINDS
from rspmn.data.keys import group_weights
from rspmn.data.windows import Windows, distinct_states, group_windows
from rspmn.errors import CircuitError
from rspmn.infer.compiled.assign import Located, locate
from rspmn.learn.structure.independence import PairStatistics, stratum_statistics
from rspmn.learn.structure.leaves import Families, asked_family, fit_leaf
from rspmn.learn.structure.rows import Rows
from rspmn.model import RSPMN
from rspmn.schema import Schema
from rspmn.types import Array, Bools, Ints
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
    return replace(
        windows,
        schema=_narrowed_schema(windows.schema, names),
        columns={n: c for n, c in windows.columns.items() if n not in names},
        next_columns={n: c for n, c in windows.next_columns.items() if n not in names},
    )


def _narrowed_schema(schema: Schema, names: Sequence[str]) -> Schema:
    order = [[name for name in group if name not in names] for group in schema.order]
    kinds = {name: kind for name, kind in schema.kinds.items() if name not in names}
    return Schema(
        filter(None, order), schema.decisions, schema.utility, kinds, schema.log, schema.available
    )


def located_without(model: RSPMN, windows: Windows, names: Sequence[str]) -> Located:
    """Return the interface nodes of a log's states in a model that some variables are not in."""
    return locate(model, distinct_states(_narrowed(windows, names)))


def put_back(model: RSPMN, schema: Schema, leaves: Mapping[str, Sequence[Leaf]]) -> RSPMN:
    """Return a model with leaves for variables that it was learned without.

    `schema`: the schema with the variables. `leaves`: for each variable, the leaf in each interface
    node that is a state [num_interfaces].
    """
    if not leaves:
        return model
    marks = {model.end: END, model.unknown: UNKNOWN}
    added = [
        [
            _marked(n, mark) if (mark := marks.get(k)) else of_nodes[k]
            for k in range(len(model.visits))
        ]
        for n, of_nodes in leaves.items()
    ]
    none = np.zeros(len(model.template), dtype=bool)
    template = _with_roots(model.template, added, none)
    # A copy has the same outcomes in the same order: the counts still fit.
    return replace(model, schema=schema, template=template, set_aside=tuple(leaves))


def take_out(model: RSPMN) -> tuple[RSPMN, dict[str, list[Leaf]]]:
    """Return a model without the variables that were set aside, and the leaves to put back.

    Nor does it have the logger's behaviour, which may depend on them.
    """
    if not model.set_aside:
        return model, {}
    leaves = {name: [_leaf_of(model, root, name) for root in model.template.roots]
              for name in model.set_aside}  # fmt: skip
    arrays = model.template.arrays
    gone, here = np.zeros(len(arrays), dtype=bool), arrays.of_kind(Leaf)
    out = [isinstance(n, Leaf) and n.variable in model.set_aside for n in arrays.objects]
    gone[here] = np.array(out, dtype=bool)[arrays.item[here]]
    template = _with_roots(model.template, [], gone)
    schema = _narrowed_schema(model.schema, model.set_aside)
    narrow = replace(
        model, schema=schema, template=template, set_aside=(), behaviour=UNKNOWN_BEHAVIOUR
    )
    return narrow, leaves


def _leaf_of(model: RSPMN, root: int, name: str) -> Leaf:
    below = (model.template.nodes[child] for child in model.template.nodes[root].children)
    for node in below:
        if isinstance(node, Leaf) and node.variable == name:
            return node
    raise CircuitError(
        f"RSPMN: {name!r} was set aside: expected a leaf of it below each interface node, "
        f"found none below node {root} of the template"
    )


def _with_roots(template: Network, added: Sequence[Sequence[Leaf]], gone: Bools) -> Network:
    """Return a template whose roots are products of more leaves, and of fewer other nodes.

    `added`: the leaf of each root, for each variable that is added. `gone`: the nodes that roots no
    longer have [nodes].
    """
    builder, arrays, roots = BlockBuilder(), template.arrays, np.array(template.roots)
    nodes, number = builder.network(template), np.arange(len(roots))
    alone = arrays.kind[roots] != KINDS[Product]  # then it is its only factor
    edges, _ = arrays.edges_of(roots)
    owner = np.repeat(number, np.diff(arrays.starts)[roots])
    kept = ~alone[owner] & ~gone[arrays.children[edges]]
    new = [builder.leaves(leaves) for leaves in added]  # [roots] each
    owner = np.concatenate([*[number] * len(new), owner[kept], number[alone]])
    factors = np.concatenate([*new, arrays.children[edges][kept], roots[alone]])
    factors, widths = factors[np.argsort(owner, kind="stable")], np.bincount(owner)
    products = builder.products(widths, factors)
    first = factors[np.cumsum(widths) - widths]
    # as if one root were added after the other, each after its leaves
    rank = len(nodes) + number * (len(new) + 1)
    order = np.concatenate([nodes, *(rank + k for k in range(len(new) + 1))])
    return builder.build(np.where(widths == 1, first, products), order)[0]


def fitted_leaves(
    rows: Rows, names: Sequence[str], here: Ints, nodes: int, families: Families
) -> dict[str, list[Leaf]]:
    """Return the distribution of variables in each interface node.

    `rows`: the log, with the variables. `names`: the variables. `here`: the interface node of each
    row [num_rows]. `nodes`: the number of interface nodes. `families`: families of leaves that were
    asked for.
    """
    return {name: _leaves(rows, name, here, nodes, families) for name in names}


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
