"""The states of an interface node in words: the values that its variables have."""

from collections.abc import Iterable, Sequence

from rspmn.circuit import Distribution, Leaf, Node
from rspmn.infer.number_ranges import joined, number_range, range_text
from rspmn.values import Value, show

#: So many values are written out where states that behave alike are one interface node.
SHOWN = 6


def values_in_node(nodes: Sequence[Node], root: int) -> dict[str, Value]:
    """Return the values of the variables in an interface node; several are one text.

    `nodes` are those of a network of states. Numbers are ranges, "2.39 to 2.57", without the tails
    of their densities.
    """
    return values_in_nodes(nodes, [root])[0]


def values_in_nodes(nodes: Sequence[Node], roots: Sequence[int]) -> list[dict[str, Value]]:
    """Return the same of several interface nodes."""
    shown: dict[tuple[int, ...], Value] = {}  # by leaves
    rows = []
    for root in roots:
        found: dict[str, dict[int, Distribution]] = {}  # of each variable, by leaf
        waiting = [root]
        for here in waiting:
            node = nodes[here]
            if isinstance(node, Leaf):
                found.setdefault(node.variable, {})[here] = node.distribution
            else:
                waiting.extend(node.children)
        row = {}
        for name, leaves in found.items():
            key = tuple(leaves)
            if key not in shown:
                shown[key] = _shown(leaves.values())
            row[name] = shown[key]
        rows.append(row)
    return rows


def _shown(held: Iterable[Distribution]) -> Value:
    values: dict[Value, None] = {}
    ranges = []
    for distribution in held:
        if distribution.atoms() is None:
            ranges.append(number_range(distribution))
        else:
            values |= dict.fromkeys(distribution.span())
    values |= {range_text(*each): None for each in joined(ranges)}
    if len(values) == 1:
        return next(iter(values))
    return " | ".join(map(show, [*values][:SHOWN])) + (" | ..." if len(values) > SHOWN else "")
