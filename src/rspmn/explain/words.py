"""Interface nodes in words."""

from collections.abc import Mapping

from rspmn.infer.compiled.state_part import state_part
from rspmn.infer.node_values import values_in_node
from rspmn.model import RSPMN
from rspmn.values import Value, show


class NodeWords:
    """The values of the variables in each interface node, and a text about them."""

    def __init__(self, model: RSPMN) -> None:
        self.model = model
        self._states = state_part(model.template)
        self._found: dict[int, dict[str, Value]] = {}

    def values(self, node: int) -> dict[str, Value]:
        """Return the value of each variable in a node; several are one text."""
        if node not in self._found:
            values = values_in_node(self._states.nodes, self._states.roots[node])
            aside = self.model.set_aside  # nodes do not differ by it
            names = [n for n in self.model.schema.information_sets[0] if n not in aside]
            self._found[node] = {name: values[name] for name in names if name in values}
        return self._found[node]

    def text(self, node: int) -> str:
        """Return a text about a node."""
        if node == self.model.end:
            return "the episode ends"
        if node == self.model.unknown:
            return "unknown successor"
        return state_text(self.values(node))


def state_text(state: Mapping[str, Value | None]) -> str:
    """Return a state as text.

    >>> state_text({"x": 1, "y": "left"})
    'x=1, y=left'
    """
    shown = ((name, "?" if value is None else show(value)) for name, value in state.items())
    return ", ".join(f"{name}={value}" for name, value in shown) or "any state"
