"""The template of a grid: a root for each node, the sum over its cells above its decisions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rspmn.availability import NeverTaken, label
from rspmn.circuit import Categorical, NetworkBuilder, PiecewiseLinear
from rspmn.end_nodes import end_root, weighted_top
from rspmn.learn.numbers.axes import SIDES, Axis, Circle, NumberLine
from rspmn.learn.numbers.follows import Follows
from rspmn.learn.numbers.grid import Grid
from rspmn.learn.numbers.successors import GridTransitions, soft_counts
from rspmn.model import RSPMN, Untried
from rspmn.schema import Schema
from rspmn.types import Array, Bools, Ints
from rspmn.values import Value

#: About the share of a ramp's mass that lies beyond the last knot.
TAIL = 1e-3
#: The tail: distances from the last knot over what the knots span, and the density there.
BEYOND = (1e-9, 1.0), (1.0, 0.1), (10.0, 1e-3), (100.0, 1e-5)
#: The density of a side of a circle just within the circle, over the highest.
WITHIN = 1e-9
#: So many steps of an action in a node and around it are enough to offer it there, or this share of
#: those that actions have on average. The outcome of others is extrapolated, and a plan finds where
#: that errs to its liking.
ENOUGH, SHARE = 10.0, 0.5
#: Around a node are knots that are next to its own, or as far as this part of all knots of an axis.
AROUND = 5


@dataclass(frozen=True, eq=False)
class Layout:
    """The variables of a grid's columns, and what else a step has."""

    schema: Schema
    categories: Sequence[tuple[str, tuple[Value, ...]]]  # names and domains
    axes: Sequence[tuple[str, ...]]  # the numbers of each
    actions: Sequence[tuple[Value, ...]]  # joint values of the decisions
    before: Sequence[int]  # nodes for the other variables known before the first decision
    after: Sequence[Sequence[int]]  # of each action, nodes for those known after it

    @property
    def numbers(self) -> list[str]:
        """The numbers of all axes."""
        return [name for axis in self.axes for name in axis]


def model_of(
    layout: Layout, grid: Grid, follows: Follows, led: GridTransitions, starts: Array,
    builder: NetworkBuilder, never: tuple[NeverTaken, ...],
) -> RSPMN:  # fmt: skip
    """Return the model of a grid.

    `layout`: the variables, and nodes in the builder for those that are not on the grid. `grid`,
    `follows`, `led`: the nodes, what follows them, and the weights of their successors. `starts`:
    how many episodes began in each node [nodes]. `builder`: takes the nodes of the template.
    `never`: where decisions were never taken.
    """
    schema = layout.schema
    end = grid.size if (follows.end > 0).any() else None
    lawful = _lawful(layout, grid)
    tried = _tried(grid, follows.steps) & lawful
    tried |= lawful & ~tried.any(axis=1, keepdims=True)
    untried = _untried(builder.copy(), layout, follows, led, lawful & ~tried, end)
    branches = _branches(builder, layout, follows, led, tried, end)
    states = _states(builder, layout, grid)
    roots = []
    for node in range(grid.size):
        offered = _decide(builder, layout, branches[node], tried[node], 0)
        assert offered is not None, "every node was visited"
        roots.append(builder.product([*states[node], *layout.before, offered]))
    if end is not None:
        roots.append(end_root(builder, schema, end))
    visits = [*grid.visits.tolist(), *([0.0] if end is not None else [])]
    top = weighted_top([*(starts / starts.sum()).tolist(), *([0.0] if end is not None else [])])
    template = builder.build(*roots)
    counts = soft_counts(grid, follows, led, starts, _outcomes(branches, tried), end)
    matter = {*layout.numbers, *(name for name, _ in layout.categories)}
    aside = tuple(name for name in schema.information_sets[0] if name not in matter)
    return RSPMN(
        schema, top, template, tuple(visits), None, never, set_aside=aside, soft_counts=counts,
        avoided=untried,
    )  # fmt: skip


def _outcomes(branches: list[list[int]], offered: Bools) -> Ints:  # [nodes, actions]
    """Return the outcome of each branch, -1 where it is not offered: in the order of nodes."""
    nodes = np.array(branches)
    found = np.full(nodes.shape, -1)
    found[offered] = np.unique(nodes[offered], return_inverse=True)[1]
    return found


def _tried(grid: Grid, steps: Array) -> Bools:  # [nodes, actions]
    """Say which actions were tried in a node or around it: often enough, or most often."""
    around = steps.reshape(-1, *(axis.size for axis in grid.axes), steps.shape[1])
    for k, axis in enumerate(grid.axes, start=1):
        at = np.arange(axis.size)
        far = np.abs(at[:, None] - at)
        if isinstance(axis, Circle):
            far = np.minimum(far, axis.size - far)
        near = (far <= max(1, axis.size // AROUND)).astype(np.float64)
        around = np.moveaxis(np.tensordot(near, around, (1, k)), 0, k)
    around = around.reshape(steps.shape)
    least = np.minimum(ENOUGH, SHARE * around.mean(axis=1, keepdims=True))
    return np.asarray((around >= least) & (around > 0))


def _lawful(layout: Layout, grid: Grid) -> Bools:  # [nodes, actions]
    """Say which actions the schema's laws allow in each node; all where they allow none."""
    allowed = np.ones((grid.size, len(layout.actions)), dtype=bool)
    at = dict(zip(layout.numbers, grid.points.T, strict=True))
    for k, (name, domain) in enumerate(layout.categories):
        at[name] = np.array([domain[code] for code in grid.nodes[:, k].tolist()], dtype=object)
    for law in layout.schema.laws:
        for a, action in enumerate(layout.actions):
            made = dict(zip(layout.schema.decisions, action, strict=True))
            if label(made[law.decision]) == law.value:
                constant = {n: np.full(grid.size, value) for n, value in made.items()}
                allowed[:, a] &= law.holds({**at, **constant})
    return np.asarray(allowed | ~allowed.any(axis=1, keepdims=True))


def _untried(
    builder: NetworkBuilder, layout: Layout, follows: Follows, led: GridTransitions, left: Bools,
    end: int | None,
) -> Untried | None:  # fmt: skip
    """Return the decisions that were not tried in a node, with what is expected of them."""
    at = np.flatnonzero(left.any(axis=1)).tolist()
    if not at:
        return None
    branches = _branches(builder, layout, follows, led, left, end)
    found = [_decide(builder, layout, branches[node], left[node], 0) for node in at]
    return Untried(builder.build(*(root for root in found if root is not None)), tuple(at))


def _decide(
    builder: NetworkBuilder, layout: Layout, branches: list[int], among: Bools, place: int,
    made: tuple[Value, ...] = (),
) -> int | None:  # fmt: skip
    """Add the max nodes over the joint decisions among some, the first ones made."""
    if place == len(layout.schema.decisions):
        return branches[layout.actions.index(made)]
    values: dict[Value, int] = {}
    for number, action in enumerate(layout.actions):
        if among[number] and action[:place] == made and action[place] not in values:
            chosen = (*made, action[place])
            below = _decide(builder, layout, branches, among, place + 1, chosen)
            assert below is not None
            values[action[place]] = below
    return builder.max(layout.schema.decisions[place], values) if values else None


def _branches(
    builder: NetworkBuilder, layout: Layout, follows: Follows, led: GridTransitions, among: Bools,
    end: int | None,
) -> list[list[int]]:  # fmt: skip
    """Add what follows each node and action among some, utility and S_L; -1 for the others."""
    size, actions = follows.steps.shape
    starts = np.searchsorted(led.site, np.arange(led.sites + 1)).tolist()
    to, weight = led.to.tolist(), led.weight.tolist()
    found = [[-1] * actions for _ in range(size)]
    for node, a in np.argwhere(among).tolist():
        part = slice(*starts[node * actions + a : node * actions + a + 2])
        ends = float(follows.end[node, a])
        children = [builder.latent(k) for k in to[part]] if ends < 1 else []
        weights = [w * (1 - ends) for w in weight[part]] if ends < 1 else []
        if end is not None and ends > 0:
            children, weights = [*children, builder.latent(end)], [*weights, ends]
        earned = builder.utility(
            layout.schema.utility, float(follows.mean[node, a]), float(follows.steps[node, a]),
            float(follows.variance[node, a]),
        )  # fmt: skip
        leads = builder.sum(children, weights)
        found[node][a] = builder.product([*layout.after[a], earned, leads])
    return found


def _states(builder: NetworkBuilder, layout: Layout, grid: Grid) -> list[list[int]]:
    """Add the state of each node: its categories, and a sum over its cells of its numbers."""
    ramps = [
        _ramps_of(builder, names, axis) for names, axis in zip(layout.axes, grid.axes, strict=True)
    ]
    shift = len(grid.sizes)
    up = grid.corners[:, shift:].tolist()
    cells: list[dict[int, float]] = [{} for _ in range(grid.size)]
    for cell, corners in enumerate(grid.nodes_of_cells.tolist()):
        intervals = grid.cells[cell, shift:].tolist()
        for corner, node in enumerate(corners):
            leaves = [ramps[j][k][up[corner][j]] for j, k in enumerate(intervals)]
            made = leaves[0] if len(leaves) == 1 else builder.product(leaves)
            cells[node][made] = cells[node].get(made, 0.0) + float(grid.weights[cell])
    found = []
    for node, parts in enumerate(cells):
        total = sum(parts.values())
        density = (
            next(iter(parts))
            if len(parts) == 1
            else builder.sum([*parts], [w / total for w in parts.values()])
        )
        codes = grid.nodes[node, :shift].tolist()
        certain = [
            builder.leaf(name, Categorical.certain(domain[code]))
            for (name, domain), code in zip(layout.categories, codes, strict=True)
        ]
        found.append([*certain, density])
    return found


def _ramps_of(builder: NetworkBuilder, names: tuple[str, ...], axis: Axis) -> list[tuple[int, int]]:
    """Add, for each interval of an axis, what falls from its first knot and what rises to the next.

    On a circle these are products of a ramp along its side and what is across it.
    """
    if isinstance(axis, NumberLine):
        return _ramps(builder, names[0], axis.knots)
    x, y = names
    found = []
    for turn in range(SIDES):
        along, across = (y, x) if turn % 2 == 0 else (x, y)
        ramps = _ramps(builder, along, axis.side)
        if turn in (1, 2):  # the number along the side falls from knot to knot
            ramps = [(rises, falls) for falls, rises in reversed(ramps)]
        here = _across(builder, across, axis, 1 if turn < 2 else -1)
        found += [(builder.product([here, a]), builder.product([here, b])) for a, b in ramps]
    return found


def _across(builder: NetworkBuilder, name: str, circle: Circle, sign: int) -> int:
    """Add the leaf of a side of a circle: highest at the radius, next to nothing within the circle.

    So numbers within the circle are on the sides they are nearest to, and those on it on one side.
    """
    low, high = float(circle.side[-1]), circle.radius
    inner = [(0.0, TAIL * WITHIN), (low * (1 - 1e-9), WITHIN), (low, low / high)]
    outer = [(high, 1.0), *((high + far * high, height * TAIL) for far, height in BEYOND)]
    points = [(sign * at, height) for at, height in (*inner, *outer)]
    return _leaf(builder, name, points[::sign])


def _ramps(builder: NetworkBuilder, name: str, knots: Array) -> list[tuple[int, int]]:
    """Add, for each interval, the leaf that falls from its lower knot and the one that rises.

    Those of the first and last knot have a tail, so that numbers beyond the log are at them.
    """
    span = float(knots[-1] - knots[0])
    least = 4 * float(np.spacing(np.abs(knots).max()))  # a number further on is another one
    beyond = [(max(far * span, least), height * TAIL / span) for far, height in BEYOND]
    found = []
    for k, (low, high) in enumerate(zip(knots[:-1].tolist(), knots[1:].tolist(), strict=True)):
        width = high - low
        peak = 2 / width
        falls, rises = [(low, peak), (high, 0.0)], [(low, 0.0), (high, peak)]
        if k == 0:
            falls = [*((low - far, height) for far, height in reversed(beyond)), *falls]
        if k == len(knots) - 2:
            rises = [*rises, *((high + far, height) for far, height in beyond)]
        found.append((_leaf(builder, name, falls), _leaf(builder, name, rises)))
    return found


def _leaf(builder: NetworkBuilder, name: str, points: list[tuple[float, float]]) -> int:
    """Add the density that goes through some points, scaled."""
    at, heights = zip(*points, strict=True)
    return builder.leaf(name, PiecewiseLinear.scaled(at, heights))
