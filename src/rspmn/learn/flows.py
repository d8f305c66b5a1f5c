"""Flows: what went where in a model, added up over a log or over parts of it.

Every place in every root's tree has a flow of its own, also where equal parts were stored once.
Flows of parts of a log add up to those of the whole, so a log need not be in memory at once.
"""

import json
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import numpy as np

from rspmn.circuit import Leaf
from rspmn.data.windows import Windows
from rspmn.infer.compiled.assign import Placed
from rspmn.infer.compiled.subtrees import Instances, Subtrees
from rspmn.learn.structure.leaves import weighted_values
from rspmn.learn.structure.rows import weigh
from rspmn.model import RSPMN
from rspmn.types import Array, Ints
from rspmn.values import Value

Key = TypeVar("Key")


@dataclass(eq=False)
class Flows:
    """What flowed through a template, added up over a log."""

    edges: Array  # [edges of all trees]
    steps: Array  # [positions], steps whose successor is known
    earned: Array  # [positions], the utility in these steps, added up
    squares: Array  # [positions], and its square
    led: dict[int, dict[int, float]]  # by position of a site, how often each interface followed
    starts: Array  # [interfaces]
    visits: Array  # [interfaces]
    arrived: Array  # [interfaces]
    #: By position of a leaf, the statistics of what was seen there (`Distribution.statistics`).
    leaves: dict[int, dict[Value, float]] = field(default_factory=dict)

    @classmethod
    def none(cls, trees: Subtrees) -> "Flows":
        """Return no flow at all."""
        positions, interfaces = len(trees.nodes), len(trees.template.roots)
        return cls(
            np.zeros(len(trees.edge)), np.zeros(positions), np.zeros(positions),
            np.zeros(positions), {}, *np.zeros((3, interfaces)),
        )  # fmt: skip

    def __add__(self, other: "Flows") -> "Flows":
        found = {
            part.name: getattr(self, part.name) + getattr(other, part.name)
            for part in fields(self)
            if part.name not in ("led", "leaves")
        }
        return Flows(
            led=_added(self.led, other.led), leaves=_added(self.leaves, other.leaves), **found
        )

    def to_json(self) -> str:
        """Return the flows as text, exactly."""
        plain = {
            part.name: getattr(self, part.name).tolist()
            for part in fields(self)
            if part.name not in ("led", "leaves")
        }
        plain["led"] = [[at, list(of.items())] for at, of in self.led.items()]
        plain["leaves"] = [[at, list(of.items())] for at, of in self.leaves.items()]
        return json.dumps(plain)

    @classmethod
    def from_json(cls, text: str) -> "Flows":
        """Read what `to_json` wrote."""
        plain = json.loads(text)
        nested: dict[str, Any] = {
            name: {at: dict(of) for at, of in plain.pop(name)} for name in ("led", "leaves")
        }
        arrays: dict[str, Any] = {name: np.array(values) for name, values in plain.items()}
        return cls(**arrays, **nested)


def _added(
    one: dict[int, dict[Key, float]], other: dict[int, dict[Key, float]]
) -> dict[int, dict[Key, float]]:
    found = {at: dict(of) for at, of in one.items()}
    for at, of in other.items():
        here = found.setdefault(at, {})
        for key, flow in of.items():
            here[key] = here.get(key, 0.0) + flow
    return found


def spread(instances: Instances, instance: Ints, logs: Array, amount: Array) -> tuple[Array, Array]:
    """Share out amounts at sites over the instances and edges above and beside them.

    `instance` says which instance is the site of each amount, `logs` how likely it is to get
    there. With what each site passes up set to the amount over the likelihood of the way there,
    the flow that comes down to it is the amount. Returned are instances' and edges' flows.
    """
    sites = np.full(len(instances.node), -np.inf)
    with np.errstate(divide="ignore"):
        sites[instance] = np.log(amount) - logs
    whole = weigh(instances.pair[instance], amount, len(instances.tops))
    return instances.down(instances.up(sites), whole)


def spread_over(
    instances: Instances, instance: Ints, logs: Array, amount: Array
) -> tuple[Array, Array]:
    """Share out amounts at sites over positions and edges of the trees."""
    at, through = spread(instances, instance, logs, amount)
    return _at(instances, at), weigh(instances.edge, through, len(instances.trees.edge))


def count_flows(model: RSPMN, placed: Placed, windows: Windows, with_leaves: bool) -> Flows:
    """Send every window with a known successor down its interface node; return what flowed."""
    known = placed.chosen & (placed.after[placed.window] >= 0)
    window, logs, instance = placed.window[known], placed.logs[known], placed.instance[known]
    instances, trees = placed.instances, placed.trees
    counts = windows.counts[window].astype(np.float64)
    column = windows.columns[windows.schema.utility]
    found = Flows.none(trees)
    low = float(column.data[window].min(initial=0.0))
    at, through = spread(instances, instance, logs, counts)
    found.steps, found.edges = _at(instances, at), weigh(instances.edge, through, len(trees.edge))
    # a window goes one way only: what it earned flows wherever it does
    earned = (column.data - low)[instances.row[instances.pair]]
    above = _at(instances, at * earned)
    deviations = earned**2
    if column.spread is not None:
        deviations += column.spread[instances.row[instances.pair]]
    squares = _at(instances, at * deviations)
    found.earned = above + low * found.steps
    found.squares = squares + 2 * low * above + low * low * found.steps
    found.led = _led(instances.position[instance], placed.after[window], counts)
    if with_leaves:
        found.leaves = leaf_flows(placed, windows, at)
    _count_starts_and_visits(model, found, windows, placed)
    return found


def _at(instances: Instances, flow: Array) -> Array:  # [positions]
    return weigh(instances.position, flow, len(instances.trees.nodes))


def _led(position: Ints, after: Ints, counts: Array) -> dict[int, dict[int, float]]:
    size = int(after.max(initial=0)) + 1
    keys, number = np.unique(position * size + after, return_inverse=True)
    found: dict[int, dict[int, float]] = {}
    for key, flow in zip(keys.tolist(), weigh(number, counts).tolist(), strict=True):
        found.setdefault(key // size, {})[key % size] = flow
    return found


def _count_starts_and_visits(model: RSPMN, flows: Flows, windows: Windows, placed: Placed) -> None:
    size = model.num_interfaces
    at, to = placed.here >= 0, placed.after >= 0
    flows.starts = weigh(placed.here[at], windows.starts[at].astype(np.float64), size)
    flows.visits = weigh(placed.here[at], windows.counts[at].astype(np.float64), size)
    flows.arrived = weigh(placed.after[to], windows.counts[to].astype(np.float64), size)


def leaf_flows(placed: Placed, windows: Windows, at: Array) -> dict[int, dict[Value, float]]:
    """Return the statistics of what each leaf saw."""
    instances, trees = placed.instances, placed.trees
    owner = trees.leaf_owner[instances.node]
    found: dict[int, dict[Value, float]] = {}
    for number, name in enumerate(trees.leaves):
        if name not in windows.columns:
            continue
        column = windows.columns[name]
        here = np.flatnonzero((owner == number) & (at > 0))
        row = instances.row[instances.pair[here]]
        present = ~column.missing[row]
        here, row = here[present], row[present]
        order = np.argsort(instances.position[here], kind="stable")
        here, row = here[order], row[order]
        position = instances.position[here]
        starts = np.flatnonzero(np.diff(position, prepend=-1))
        stops = np.append(starts[1:], len(here))[: len(starts)]
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            node = trees.template.nodes[int(trees.nodes[position[start]])]
            assert isinstance(node, Leaf)
            part = slice(start, stop)
            values, weights = weighted_values(column.take(row[part]), at[here[part]])
            found[int(position[start])] = node.distribution.statistics(values, weights)
    return found
