"""Networks as JSON, one node a line: for people to read and machines to check.

Large ones are written as arrays, see `json_arrays`.
"""

import json
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rspmn.circuit.distributions import registered
from rspmn.circuit.fields import Fields, compact, is_long, located, plain_values
from rspmn.circuit.json_arrays import arrays_from_json, arrays_to_json
from rspmn.circuit.latent_factors import LatentFactors
from rspmn.circuit.network import Network
from rspmn.circuit.node_arrays import NodeViews
from rspmn.circuit.nodes import FactoredLatents, Latent, Leaf, Max, Node, Product, Sum, Utility
from rspmn.errors import CircuitError, ModelFileError, RspmnError, did_you_mean


def network_to_json(network: Network) -> str:
    """Return a network as JSON text, one node a line.

    >>> from rspmn.circuit import NetworkBuilder
    >>> b = NetworkBuilder()
    >>> print(network_to_json(b.build(b.product([b.utility("u", 1.0), b.latent(0)]))))
    {"roots": [2], "nodes": [
    {"id": 0, "kind": "utility", "variable": "u", "mean": 1.0, "count": 0.0, "variance": 0.0},
    {"id": 1, "kind": "latent", "interface": 0},
    {"id": 2, "kind": "product", "children": [0, 1]}
    ]}
    """
    arrays = network.arrays
    objects = (arrays.objects[k] for k in arrays.item_of(FactoredLatents).tolist())
    factors = dict.fromkeys(one.factors for one in objects if isinstance(one, FactoredLatents))
    number = {one: k for k, one in enumerate(factors)}
    head = f'{{"roots": {dumps(compact(network.roots))}, '
    if factors:
        head += '"factors": [\n' + ",\n".join(map(dumps, map(_plain_factors, factors))) + "\n], "
    if is_long(network):
        parts = arrays_to_json(arrays, number, _plain_leaf)
        lines = [f"{dumps(name)}: {dumps(part)}" for name, part in parts.items()]
        return head + '"arrays": {\n' + ",\n".join(lines) + "\n}}"
    nodes = enumerate(network.nodes)
    lines = [dumps({"id": index, **_plain(node, number)}) for index, node in nodes]
    return head + '"nodes": [\n' + ",\n".join(lines) + "\n]}"


def network_from_json(raw: object, where: str) -> Network:
    """Read a network; an error names the node that it is about."""
    fields = Fields(raw, where, ["roots", "factors", "nodes", "arrays"])
    given = fields.array("factors") if "factors" in fields.raw else []
    factors = [_factors(one, f"{where}, factors {k}") for k, one in enumerate(given)]
    if "arrays" in fields.raw:
        arrays = arrays_from_json(
            Fields(fields.raw["arrays"], f"{where}, arrays"), factors, _whole_leaf
        )
        with located(where):
            return Network(NodeViews(arrays), fields.integers("roots"))
    nodes: list[Node] = []
    for index, node in enumerate(fields.array("nodes")):
        of_node = _NodeFields(node, where, index)
        try:
            nodes.append(_node(of_node, index, factors))
        except ModelFileError:
            raise
        except RspmnError as error:
            raise ModelFileError(f"{of_node.where}: {error}") from None
    with located(where):
        return Network(tuple(nodes), fields.integers("roots"))


class _NodeFields(Fields):
    """The fields of a node; its place is put into words where an error asks for it."""

    def __init__(self, raw: object, network: str, index: int) -> None:
        self._place = network, index
        super().__init__(raw, network)

    @property
    def where(self) -> str:
        """The place of the node in its file."""
        return f"{self._place[0]}, node {self._place[1]}"


def dumps(plain: object) -> str:
    """Return JSON text on one line; NaN and infinity are refused, as JSON has neither."""
    return _ENCODER.encode(plain)


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def _plain(node: Node, factors: Mapping[LatentFactors, int]) -> dict[str, object]:
    match node:
        case Sum():
            return {"kind": "sum", "children": node.children, "weights": node.weights}
        case Product():
            return {"kind": "product", "children": node.children}
        case Max():
            return {
                "kind": "max",
                "decision": node.decision,
                "values": plain_values(node.values),
                "children": node.children,
            }
        case Leaf():
            return _plain_leaf(node)
        case Utility():
            return {
                "kind": "utility",
                "variable": node.variable,
                "mean": node.mean,
                "count": node.count,
                "variance": node.variance,
            }
        case Latent():
            return {"kind": "latent", "interface": node.interface}
        case FactoredLatents():
            return {
                "kind": "factored latents", "factors": factors[node.factors], "rows": node.rows,
            }  # fmt: skip


def _plain_factors(factors: LatentFactors) -> dict[str, object]:
    return {
        "interfaces": factors.interfaces,
        "to": compact(factors.to),
        "share": factors.share.tolist(),
        "components": [
            {"classes": compact(classes), "tables": table.tolist()}
            for classes, table in zip(factors.classes.T, factors.tables, strict=True)
        ],
    }


def _factors(raw: object, where: str) -> LatentFactors:
    fields = Fields(raw, where, ["interfaces", "to", "share", "components"])
    classes, tables = [], []
    for number, one in enumerate(fields.array("components")):
        part = Fields(one, f"{where}, component {number}", ["classes", "tables"])
        rows = [Fields({"row": row}, part.where).numbers("row") for row in part.array("tables")]
        if len({len(row) for row in rows}) != 1:
            raise ModelFileError(f"{part.where}: expected rows of one length")
        classes.append(part.integers("classes"))
        tables.append(rows)
    to = fields.integers("to")
    if not classes or any(len(part) != len(to) for part in classes):
        raise ModelFileError(f"{where}: expected a class of each of {len(to)} cells")
    with located(where):
        return LatentFactors(
            fields.integer("interfaces"), np.array(classes).T, np.array(to, dtype=np.int64),
            np.array(fields.numbers("share")), tuple(map(np.array, tables)),
        )  # fmt: skip


def _plain_leaf(leaf: Leaf) -> dict[str, object]:
    family = type(leaf.distribution)
    if registered(family.family) is not family:
        raise CircuitError(
            f"{family.__name__}: expected a registered family, as the file could not be read "
            "otherwise: decorate the class with `rspmn.circuit.register`"
        )
    head = {"kind": "leaf", "variable": leaf.variable, "distribution": family.family}
    return head | leaf.distribution.to_json()


def _leaf(fields: Fields) -> Leaf:
    family = registered(fields.text("distribution"))
    return Leaf(fields.text("variable"), family.from_json(fields))


def _whole_leaf(fields: Fields) -> Leaf:
    """Read a leaf from an object that holds nothing else."""
    leaf = _leaf(fields)
    fields.only([*_plain_leaf(leaf)])
    return leaf


def _factored(fields: Fields, factors: Sequence[LatentFactors]) -> FactoredLatents:
    number = fields.integer("factors")
    if not 0 <= number < len(factors):
        raise ModelFileError(f"{fields.where}: there are no factors {number}")
    return FactoredLatents(factors[number], fields.integers("rows"))


_KINDS: dict[str, Callable[[Fields], Node]] = {
    "sum": lambda f: Sum(f.integers("children"), f.numbers("weights")),
    "product": lambda f: Product(f.integers("children")),
    "max": lambda f: Max(f.text("decision"), f.values("values"), f.integers("children")),
    "leaf": _leaf,
    "utility": lambda f: Utility(
        f.text("variable"), f.number("mean"), f.number("count"), f.number("variance")
    ),
    "latent": lambda f: Latent(f.integer("interface")),
}

#: The keys of kinds that have the same ones always.
_KEYS = {
    "sum": {"id", "kind", "children", "weights"},
    "product": {"id", "kind", "children"},
    "max": {"id", "kind", "decision", "values", "children"},
    "utility": {"id", "kind", "variable", "mean", "count", "variance"},
    "latent": {"id", "kind", "interface"},
}


def _node(fields: Fields, index: int, factors: Sequence[LatentFactors]) -> Node:
    if fields.integer("id") != index:
        raise ModelFileError(f"{fields.where}: its 'id' is {fields.raw['id']}, expected {index}")
    kind = fields.text("kind")
    if kind == "factored latents":
        fields.only(["id", "kind", "factors", "rows"])
        return _factored(fields, factors)
    if kind not in _KINDS:
        raise ModelFileError(f"{fields.where}: unknown kind {kind!r}: {did_you_mean(kind, _KINDS)}")
    node = _KINDS[kind](fields)
    if kind not in _KEYS or fields.raw.keys() != _KEYS[kind]:
        fields.only(["id", *_plain(node, {})])
    return node
