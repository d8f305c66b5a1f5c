"""Large networks as JSON: a list of each property of their nodes, not a line for each node.

A million lines take ten times the room and time of the lists, and nobody reads them.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rspmn.circuit.fields import Fields, compact, located, plain_values
from rspmn.circuit.latent_factors import LatentFactors
from rspmn.circuit.node_arrays import KINDS, NodeArrays, unchecked
from rspmn.circuit.nodes import FactoredLatents, Latent, Leaf, Max, Product, Sum, Utility
from rspmn.errors import ModelFileError
from rspmn.types import Array, Bools, Ints

#: Kinds of nodes that have children.
INNER = [KINDS[kind] for kind in (Product, Sum, Max)]
KEYS = (
    "kind", "width", "children", "weights", "decisions", "decision", "values", "choice",
    "interface", "utilities", "utility", "mean", "count", "variance", "leaves", "factored", "rows",
)  # fmt: skip


def arrays_to_json(
    arrays: NodeArrays,
    factors: Mapping[LatentFactors, int],
    plain_leaf: Callable[[Leaf], dict[str, object]],
) -> dict[str, object]:
    """Return the properties of nodes, each as JSON has it; `arrays_from_json` reads them."""
    width = np.diff(arrays.starts)
    parent = arrays.kind[arrays.parents]
    utility = arrays.utilities[arrays.item_of(Utility)]
    objects = [
        arrays.objects[k] for kind in (Leaf, FactoredLatents) for k in arrays.item_of(kind).tolist()
    ]
    factored = [one for one in objects if isinstance(one, FactoredLatents)]
    number = np.array([factors[one.factors] for one in factored], dtype=np.int64)
    rows = [[one.rows for one in factored if one.factors == each] for each in factors]
    return {
        "kind": compact(arrays.kind),
        "width": compact(width[np.isin(arrays.kind, INNER)]),
        "children": compact(arrays.children),
        "weights": arrays.weights[parent == KINDS[Sum]].tolist(),
        "decisions": list(arrays.decisions),
        "decision": compact(arrays.item_of(Max)),
        "values": plain_values(arrays.values),
        "choice": compact(arrays.choice[parent == KINDS[Max]]),
        "interface": compact(arrays.item_of(Latent)),
        "utilities": list(arrays.names),
        "utility": compact(utility[:, 0].astype(np.int64)),
        "mean": utility[:, 1].tolist(),
        "count": utility[:, 2].tolist(),
        "variance": utility[:, 3].tolist(),
        "leaves": [plain_leaf(one) for one in objects if isinstance(one, Leaf)],
        "factored": compact(number),
        "rows": [[compact(column) for column in np.array(part).T] for part in rows],
    }


def arrays_from_json(
    fields: Fields, factors: Sequence[LatentFactors], leaf: Callable[[Fields], Leaf]
) -> NodeArrays:
    """Read the properties of nodes. `NodeArrays.refuse_faults` checks what a network may be."""
    fields.only(list(KEYS))
    kind = _places(fields, "kind", len(KINDS))
    of = {each: np.flatnonzero(kind == code) for each, code in KINDS.items()}
    children = _places(fields, "children", len(kind))
    starts = _starts(fields, np.isin(kind, INNER), len(children))
    parent = np.repeat(kind, np.diff(starts))
    sums, chosen = np.flatnonzero(parent == KINDS[Sum]), np.flatnonzero(parent == KINDS[Max])
    weights, choice = np.ones(len(children)), np.full(len(children), -1)
    weights[sums] = _numbers(fields, "weights", len(sums))
    decisions, names = fields.texts("decisions"), fields.texts("utilities")
    values = fields.values("values")
    if "" in (*decisions, *names):
        raise ModelFileError(f"{fields.where}: expected names of decisions and utilities, found ''")
    typed = [(type(value), value) for value in values]
    for name, listed in (("decisions", decisions), ("utilities", names), ("values", typed)):
        if len(set(listed)) < len(listed):
            raise ModelFileError(f"{fields.where}: {name!r}: expected each once")
    choice[chosen] = _places(fields, "choice", len(values), len(chosen))
    objects: list[Leaf | FactoredLatents] = [
        *_leaves(fields, leaf, len(of[Leaf])),
        *_factored(fields, factors, len(of[FactoredLatents])),
    ]
    item = np.zeros(len(kind), dtype=np.int64)
    item[np.append(of[Leaf], of[FactoredLatents])] = np.arange(len(objects))
    item[of[Max]] = _places(fields, "decision", len(decisions), len(of[Max]))
    item[of[Latent]] = _places(fields, "interface", 2**53, len(of[Latent]))
    item[of[Utility]] = np.arange(len(of[Utility]))
    utilities = np.empty((len(of[Utility]), 4))
    utilities[:, 0] = _places(fields, "utility", len(names), len(utilities))
    for column, name in enumerate(("mean", "count", "variance"), 1):
        utilities[:, column] = _numbers(fields, name, len(utilities))
    return NodeArrays(
        kind, item, starts, children, weights, choice, decisions, values, tuple(objects), names,
        utilities,
    )  # fmt: skip


def _starts(fields: Fields, inner: Bools, edges: int) -> Ints:  # [nodes + 1]
    """Read how many children nodes have; return the first edge of each."""
    width = np.zeros(len(inner), dtype=np.int64)
    width[inner] = _places(fields, "width", edges + 1, int(inner.sum()))
    starts = np.concatenate([[0], np.cumsum(width)])
    if starts[-1] != edges:
        raise ModelFileError(f"{fields.where}: {edges} 'children', but {starts[-1]} by 'width'")
    return starts


def _leaves(fields: Fields, leaf: Callable[[Fields], Leaf], length: int) -> list[Leaf]:
    given = fields.array("leaves")
    _refuse_length(fields, "leaves", len(given), length)
    found = []
    for number, one in enumerate(given):
        where = f"{fields.where}, leaf {number}"
        with located(where):
            found.append(leaf(Fields(one, where)))
    return found


def _factored(
    fields: Fields, factors: Sequence[LatentFactors], length: int
) -> list[FactoredLatents]:
    """Read a row of each table of its factors for each product of factors."""
    number, rows = _places(fields, "factored", len(factors), length), fields.array("rows")
    _refuse_length(fields, "rows", len(rows), len(factors))
    found = np.empty(length, dtype=object)
    for k, (of, columns) in enumerate(zip(factors, rows, strict=True)):
        where, nodes = f"{fields.where}, rows {k}", np.flatnonzero(number == k)
        if not isinstance(columns, list) or len(columns) != len(of.tables):
            raise ModelFileError(f"{where}: expected a list for each of {len(of.tables)} tables")
        part = Fields(dict(zip(map(str, range(len(columns))), columns, strict=True)), where)
        each = [
            _places(part, str(c), len(table), len(nodes)).tolist()
            for c, table in enumerate(of.tables)
        ]
        for node, row in zip(nodes.tolist(), zip(*each, strict=True), strict=True):
            found[node] = unchecked(FactoredLatents, factors=of, rows=row)
    return found.tolist()


def _places(fields: Fields, name: str, below: int, length: int | None = None) -> Ints:
    """Read integers from 0 to less than a bound."""
    found = np.array(fields.integers(name), dtype=np.int64)
    _refuse_length(fields, name, len(found), length)
    odd = (found < 0) | (found >= below)
    if odd.any():
        raise ModelFileError(
            f"{fields.where}: {name!r}: expected integers from 0 to {below - 1}, found "
            f"{found[odd.argmax()]}"
        )
    return found


def _numbers(fields: Fields, name: str, length: int) -> Array:
    found = np.array(fields.numbers(name), dtype=np.float64)
    _refuse_length(fields, name, len(found), length)
    return found


def _refuse_length(fields: Fields, name: str, found: int, expected: int | None) -> None:
    if expected not in (None, found):
        raise ModelFileError(f"{fields.where}: {name!r}: expected {expected}, found {found}")
