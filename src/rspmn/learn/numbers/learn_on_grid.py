"""LearnRSPMN where numbers matter: interface nodes as soft boxes on a grid.

The steps are those of the paper with other means. Steps 1 and 2, which variables matter and what
the interface nodes are, become `relevant` and `grid`. Step 4, what follows each, becomes `follows`
and `successors`. The result is a sound template like any other.
"""

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from rspmn.availability import label
from rspmn.circuit import StudentT
from rspmn.data.columns import Column
from rspmn.data.windows import Windows
from rspmn.learn.config import LearnConfig
from rspmn.learn.never_taken import never_taken
from rspmn.learn.numbers.axes import SIDES, Axis, Circle, NumberLine, quantile_knots, radius_of
from rspmn.learn.numbers.displacements import Logged, fit_displacements, half_of
from rspmn.learn.numbers.follows import expected_next, next_categories
from rspmn.learn.numbers.grid import Grid, fit_grid
from rspmn.learn.numbers.held_out import Miss, misses
from rspmn.learn.numbers.relevant_numbers import STEPS_PER_NODE, NumbersInfo, continuous
from rspmn.learn.numbers.resolution import CHANGE, Solved, change_between, coarsest
from rspmn.learn.numbers.sample import with_sample
from rspmn.learn.numbers.size import KNOTS, GridSize
from rspmn.learn.numbers.steps import Steps, steps_of
from rspmn.learn.numbers.successors import transitions
from rspmn.learn.numbers.template import Layout, model_of
from rspmn.learn.structure.learner import Learner
from rspmn.learn.structure.leaves import SmoothedLeaves
from rspmn.learn.structure.rows import Rows, table_of
from rspmn.memory import KEPT
from rspmn.model import RSPMN
from rspmn.schema import Kind
from rspmn.types import Array, Ints

Names = tuple[str, ...]  # of the numbers of an axis


def learn_on_grid(
    windows: Windows, config: LearnConfig, info: NumbersInfo, deadline: float = math.inf
) -> RSPMN:
    """Return a model whose interface nodes are soft boxes of what matters.

    `info` says what matters; which knots were chosen is added to it.
    """
    windows = continuous(windows, info.integers)
    names = [n for n in info.relevant if windows.columns[n].kind is Kind.CONTINUOUS]
    steps = steps_of(windows, frozenset(names))
    circles = _circles(steps, names)
    chosen = Chosen(_together(names, circles), [n for n in info.relevant if n not in names])
    steps = steps.thinned(KEPT >> len(chosen.axes))  # each belongs to 2^d nodes
    solved, info.losses = _resolved(steps, chosen, circles, deadline)
    info.circles = tuple(circles)
    for together, axis in zip(chosen.axes, solved.grid.axes, strict=True):
        info.knots |= {n: tuple(k.tolist()) for n, k in zip(together, axis.points.T, strict=True)}
    if time.monotonic() < deadline:
        info.misses = tuple(str(miss) for miss in _misses(steps, chosen, solved.grid.axes))
    return _model(windows, config, steps, chosen, solved)


def estimate_on_grid(
    windows: Windows, config: LearnConfig, axes: Mapping[Names, Axis], categories: Sequence[str]
) -> RSPMN:
    """Return the model of a grid that is given: its axes by their numbers, and its categories."""
    chosen = Chosen([*axes], categories)
    steps = steps_of(windows, frozenset(chosen.numbers)).thinned(KEPT >> len(axes))
    solved = _solve(steps, chosen, tuple(axes.values()))
    return _model(windows, config, steps, chosen, solved)


@dataclass(frozen=True)
class Chosen:
    """The names of the variables of a grid."""

    axes: Sequence[Names]
    categories: Sequence[str]

    @property
    def numbers(self) -> list[str]:
        """The numbers of all axes."""
        return [name for axis in self.axes for name in axis]


def _circles(steps: Steps, names: Sequence[str]) -> dict[Names, float]:
    """Return the radius of each two numbers that are on a circle in all steps."""
    values = {v.name: np.append(v.values(), v.next_values()) for v in steps.only(names)}
    found: dict[Names, float] = {}
    for pair in combinations(names, 2):
        if not {*pair} & {name for other in found for name in other}:
            radius = radius_of(*(values[name] for name in pair))
            if radius is not None:
                found[pair] = radius
    return found


def _together(names: Sequence[str], circles: Collection[Names]) -> list[Names]:
    """Return the numbers of each axis, in the order of the first of them."""
    axes = {name: pair for pair in circles for name in pair}
    return list(dict.fromkeys(axes.get(name, (name,)) for name in names))


def _model(
    windows: Windows, config: LearnConfig, steps: Steps, chosen: Chosen, solved: Solved
) -> RSPMN:
    columns, counts = windows.columns, windows.counts.astype(np.float64)
    table = table_of(columns, counts, config.bins, windows.schema.decisions)
    rows = Rows(table, steps.rows, steps.counts)
    learner = Learner(config, np.random.default_rng(0), rows, windows.schema.utility)
    layout = _layout(learner, rows, windows, steps, chosen)
    starts = _starts(windows, solved.grid, chosen)
    never = never_taken(rows, windows.schema, solved.membership.likeliest(), solved.grid.size)
    builder = learner.builder
    model = model_of(layout, solved.grid, solved.follows, solved.led, starts, builder, never)
    return with_sample(model, windows, steps)


def _resolved(
    steps: Steps, chosen: Chosen, circles: Mapping[Names, float], deadline: float
) -> tuple[Solved, dict[int, float]]:
    """Return the coarsest grid that is fine enough, and what decisions of each would lose."""
    total, lines = float(steps.counts.sum()), len(chosen.axes) - len(circles)
    size = GridSize(steps, [*chosen.numbers, *chosen.categories])
    solved: dict[int, Solved] = {}
    per_node = 0.0  # the seconds that a node of the last grid took
    for fine in KNOTS if lines else [k for k in KNOTS if _on_circle(k) == k]:
        last = next(reversed(solved.values()), None)
        nodes = fine**lines * _on_circle(fine) ** len(circles)
        began = time.monotonic()
        if last and (
            total < STEPS_PER_NODE * last.grid.categories * nodes
            or not size.fits(nodes)
            or began + per_node * nodes >= deadline
        ):
            break
        found = _solve(steps, chosen, _axes(steps, chosen, circles, fine), last)
        coarser = [s for k, s in solved.items() if not circles or _on_circle(k) < _on_circle(fine)]
        solved[fine], per_node = found, (time.monotonic() - began) / nodes
        if coarser and change_between(coarser[-1], found) < CHANGE:
            break
    best, losses = coarsest([*solved.values()])
    return best, dict(zip(solved, losses, strict=True))


def _misses(steps: Steps, chosen: Chosen, axes: tuple[Axis, ...]) -> tuple[Miss, ...]:
    """Return what a grid of half of the steps mispredicts of the other half."""
    first = half_of(steps.counts)
    one, other = (
        replace(steps, counts=counts).take(np.flatnonzero(counts > 0))
        for counts in (first, steps.counts - first)
    )
    if not (len(one) and len(other)):
        return ()
    solved = _solve(one, chosen, axes)
    actions = [
        ", ".join(f"{n} {label(v)}" for n, v in zip(steps.decisions, action, strict=True))
        for action in steps.actions
    ]
    categories = [(v.name, [label(x) for x in v.column.domain])
                  for v in steps.only(chosen.categories)]  # fmt: skip
    fitted, test = (_logged(each, chosen)[0] for each in (one, other))
    return misses(solved, fitted, test, actions, chosen.numbers, categories)


def _axes(
    steps: Steps, chosen: Chosen, circles: Mapping[Names, float], most: int
) -> tuple[Axis, ...]:
    """Return axes of about so many knots."""
    found: list[Axis] = []
    for names in chosen.axes:
        if names in circles:
            found.append(Circle(circles[names], _on_circle(most)))
        else:
            (v,) = steps.only(names)
            found.append(
                NumberLine(quantile_knots(v.values(), v.next_values(), steps.counts, most))
            )
    return tuple(found)


def _on_circle(knots: int) -> int:
    """Return how many knots a circle has: a multiple of the number of its sides."""
    return -(-knots // SIDES) * SIDES


def _solve(
    steps: Steps, chosen: Chosen, axes: tuple[Axis, ...], coarser: Solved | None = None
) -> Solved:
    """Return what follows the nodes of a grid.

    Displacements are those of a coarser grid, unless there are gaps, which each grid fills anew.
    """
    log, sizes = _logged(steps, chosen)
    grid, membership, filled = fit_grid(log.codes, sizes, log.numbers, axes, log.counts)
    gaps, log = bool(np.isnan(log.numbers).any()), replace(log, numbers=filled)
    if coarser is None or gaps:
        displacements = fit_displacements(log, sizes)
    else:
        displacements = coarser.displacements
    follows = expected_next(grid, membership, log, displacements)
    by_kind = displacements.by_kind(log)
    nexts = [next_categories(grid, membership, by_kind, k) for k in range(len(sizes))]
    led = transitions(grid, follows, nexts)
    return Solved(grid, follows, led, membership, displacements)


def _logged(steps: Steps, chosen: Chosen) -> tuple[Logged, tuple[int, ...]]:
    """Return steps as the models see them, gaps not filled, and how many codes categories have."""
    numbers, categories = steps.only(chosen.numbers), steps.only(chosen.categories)
    after = np.stack([v.next_values() for v in numbers], axis=1)
    codes, sizes = _coded([v.column for v in categories], len(steps))
    next_codes, _ = _coded([v.after for v in categories], len(steps))
    spread = steps.utility.spread
    return Logged(
        np.stack([v.values() for v in numbers], axis=1),
        np.where(steps.ended[:, None], np.nan, after), codes, next_codes, steps.action,
        len(steps.actions), steps.ended, steps.utility.data.astype(np.float64),
        np.zeros(len(steps)) if spread is None else spread, steps.counts,
    ), sizes  # fmt: skip


def _coded(columns: Sequence[Column], rows: int) -> tuple[Ints, tuple[int, ...]]:
    if not columns:
        return np.zeros((rows, 0), dtype=np.int64), ()
    codes = np.stack([column.data.astype(np.int64) for column in columns], axis=1)
    return codes, tuple(len(column.domain) for column in columns)


def _layout(learner: Learner, rows: Rows, windows: Windows, steps: Steps, chosen: Chosen) -> Layout:
    """Return the names of a grid's columns, and the leaves of all other variables."""
    schema, used = windows.schema, {*chosen.numbers, *chosen.categories}
    aside = [n for n in schema.information_sets[0] if n not in used]
    before = [_open_leaf(learner, rows, name) for name in aside]
    of_action = [rows.where(steps.action == a) for a in range(len(steps.actions))]
    after = [learner.leaves(mine, schema.information_sets[-1]) for mine in of_action]
    domains = [(name, windows.columns[name].domain) for name in chosen.categories]
    return Layout(schema, domains, chosen.axes, steps.actions, before, after)


def _open_leaf(learner: Learner, rows: Rows, name: str) -> int:
    """Add a leaf of a variable that does not matter: no value of it excludes a state."""
    families = learner.config.leaves
    if name in rows.table.ordered and name not in families:
        families = {**families, name: StudentT}
    return SmoothedLeaves(rows, name, families).add_whole(learner.builder)


def _starts(windows: Windows, grid: Grid, chosen: Chosen) -> Array:  # [nodes]
    """Return how many episodes began in each node."""
    began = np.flatnonzero(windows.starts > 0)
    values = np.stack([windows.columns[n].numbers()[began] for n in chosen.numbers], axis=1)
    codes, _ = _coded([windows.columns[n].take(began) for n in chosen.categories], len(began))
    return grid.locate(codes, values).sums(
        np.ones(len(began)), windows.starts[began].astype(np.float64)
    )
