"""Networks as JSON: one node a line, to be read by people and checked by machines."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rspmn.circuit.distributions import (
    Categorical,
    Distribution,
    IntegerHistogram,
    PiecewiseLinear,
)
from rspmn.circuit.network import Network
from rspmn.circuit.nodes import Latent, Leaf, Max, Node, Product, Sum, Utility
from rspmn.errors import ModelFileError, RspmnError, did_you_mean
from rspmn.values import END, UNKNOWN, Mark, Value, as_value


def network_to_json(network: Network) -> str:
    """Write a network as JSON text, one node a line.

    >>> from rspmn.circuit import NetworkBuilder
    >>> b = NetworkBuilder()
    >>> print(network_to_json(b.build(b.product([b.utility("u", 1.0), b.latent(0)]))))
    {"roots": [2], "nodes": [
    {"id": 0, "kind": "utility", "variable": "u", "mean": 1.0, "count": 0.0, "variance": 0.0},
    {"id": 1, "kind": "latent", "interface": 0},
    {"id": 2, "kind": "product", "children": [0, 1]}
    ]}
    """
    lines = [dumps({"id": index, **_plain(node)}) for index, node in enumerate(network.nodes)]
    return f'{{"roots": {dumps(network.roots)}, "nodes": [\n' + ",\n".join(lines) + "\n]}"


def network_from_json(raw: object, where: str) -> Network:
    """Read a network; whatever is wrong is named with the node it stands in."""
    fields = Fields(raw, where, ["roots", "nodes"])
    nodes = tuple(
        _node(Fields(node, f"{where}, node {index}"), index)
        for index, node in enumerate(fields.array("nodes"))
    )
    with located(where):
        return Network(nodes, fields.integers("roots"))


def dumps(plain: object) -> str:
    """Write JSON text on one line, refusing what JSON has no word for."""
    return json.dumps(plain, ensure_ascii=False, allow_nan=False)


@contextmanager
def located(where: str) -> Iterator[None]:
    """If what is made inside refuses to be made, say where in the file it stands."""
    try:
        yield
    except ModelFileError:
        raise
    except RspmnError as error:
        raise ModelFileError(f"{where}: {error}") from None


class Fields:
    """A JSON object that is asked for its fields and names the one that is amiss."""

    def __init__(self, raw: object, where: str, valid: list[str] | None = None) -> None:
        if not isinstance(raw, dict):
            raise ModelFileError(f"{where}: expected an object, found {_brief(raw)}")
        self.raw: Mapping[str, object] = raw
        self.where = where
        if valid is not None:
            self.only(valid)

    def only(self, valid: list[str]) -> None:
        """Refuse every key but these."""
        for key in self.raw:
            if key not in valid:
                raise ModelFileError(
                    f"{self.where}: unknown key {key!r}: {did_you_mean(key, valid)}"
                )

    def get(self, key: str, kind: type, name: str) -> Any:
        """Return a field of one type."""
        if key not in self.raw:
            raise ModelFileError(f"{self.where}: no {key!r}")
        found = self.raw[key]
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
            raise ModelFileError(f"{self.where}: {key!r} must be {name}, found {_brief(found)}")
        return found

    def text(self, key: str) -> str:
        """Return a string."""
        return str(as_value(self.get(key, str, "a string"), key))

    def integer(self, key: str) -> int:
        """Return an integer."""
        return int(self.get(key, int, "an integer"))

    def number(self, key: str) -> float:
        """Return a number."""
        return _as_float(self.get(key, int | float, "a number"), f"{self.where}: {key!r}")  # type: ignore[arg-type]

    def array(self, key: str) -> list[object]:
        """Return a list."""
        return list(self.get(key, list, "a list"))

    def integers(self, key: str) -> tuple[int, ...]:
        """Return a list of integers."""
        return self._each(key, lambda item: type(item) is int, "integers")

    def numbers(self, key: str) -> tuple[float, ...]:
        """Return a list of numbers."""
        found = self._each(key, lambda item: type(item) in (int, float), "numbers")
        return tuple(_as_float(number, f"{self.where}: {key!r}") for number in found)

    def values(self, key: str) -> tuple[Value, ...]:
        """Return a list of values, `{"end": true}` among them for END and its like."""
        return tuple(_mark(item) or as_value(item, key) for item in self.array(key))

    def _each(self, key: str, fits: Callable[[object], bool], name: str) -> tuple[Any, ...]:
        for item in (items := self.array(key)):
            if not fits(item):
                raise ModelFileError(
                    f"{self.where}: {key!r} must be a list of {name}, found {_brief(item)} in it"
                )
        return tuple(items)


# ---- nodes ---------------------------------------------------------------------------


def _plain(node: Node) -> dict[str, object]:
    match node:
        case Sum():
            return {"kind": "sum", "children": node.children, "weights": node.weights}
        case Product():
            return {"kind": "product", "children": node.children}
        case Max():
            return {
                "kind": "max",
                "decision": node.decision,
                "values": _plain_values(node.values),
                "children": node.children,
            }
        case Leaf():
            return {"kind": "leaf", "variable": node.variable, **_plain_leaf(node.distribution)}
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


def _plain_leaf(distribution: Distribution) -> dict[str, object]:
    match distribution:
        case Categorical():
            return {
                "distribution": "categorical",
                "values": _plain_values(distribution.values),
                "probabilities": distribution.probabilities,
            }
        case IntegerHistogram():
            return {
                "distribution": "integer_histogram",
                "edges": distribution.edges,
                "masses": distribution.masses,
            }
        case PiecewiseLinear():
            return {
                "distribution": "piecewise_linear",
                "knots": distribution.knots,
                "densities": distribution.densities,
            }


_MARKS = {END: "end", UNKNOWN: "unknown"}


def _plain_values(values: tuple[Value, ...]) -> list[object]:
    return [{_MARKS[v]: True} if isinstance(v, Mark) else v for v in values]


_DISTRIBUTIONS: dict[str, Callable[[Fields], Distribution]] = {
    "categorical": lambda f: Categorical(f.values("values"), f.numbers("probabilities")),
    "integer_histogram": lambda f: IntegerHistogram(f.integers("edges"), f.numbers("masses")),
    "piecewise_linear": lambda f: PiecewiseLinear(f.numbers("knots"), f.numbers("densities")),
}
_KINDS: dict[str, Callable[[Fields], Node]] = {
    "sum": lambda f: Sum(f.integers("children"), f.numbers("weights")),
    "product": lambda f: Product(f.integers("children")),
    "max": lambda f: Max(f.text("decision"), f.values("values"), f.integers("children")),
    "leaf": lambda f: Leaf(f.text("variable"), _pick(f, "distribution", _DISTRIBUTIONS)(f)),
    "utility": lambda f: Utility(
        f.text("variable"), f.number("mean"), f.number("count"), f.number("variance")
    ),
    "latent": lambda f: Latent(f.integer("interface")),
}


def _node(fields: Fields, index: int) -> Node:
    if fields.integer("id") != index:
        raise ModelFileError(f"{fields.where}: its 'id' is {fields.raw['id']}, expected {index}")
    with located(fields.where):
        node: Node = _pick(fields, "kind", _KINDS)(fields)
    fields.only(["id", *_plain(node)])
    return node


def _pick(fields: Fields, key: str, table: dict[str, Callable[[Fields], Any]]) -> Any:
    name = fields.text(key)
    if name not in table:
        raise ModelFileError(f"{fields.where}: unknown {key} {name!r}: {did_you_mean(name, table)}")
    return table[name]


def _mark(raw: object) -> Mark | None:
    if not isinstance(raw, dict) or [v is True for v in raw.values()] != [True]:
        return None
    return next((mark for mark, key in _MARKS.items() if key in raw), None)


def _as_float(number: float, where: str) -> float:
    try:
        return float(number)
    except OverflowError:
        raise ModelFileError(f"{where} is too large a number") from None


def _brief(raw: object) -> str:
    text = repr(raw)
    return text if len(text) <= 40 else text[:37] + "..."
