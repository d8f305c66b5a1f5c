"""LearnRSPMN where numbers matter: interface nodes as soft boxes on a grid.

The steps are those of the paper with other means. Steps 1 and 2, which variables matter and what
the interface nodes are, become `relevant` and `grid`. Step 4, what follows each, becomes `follows`
and `successors`. The result is a sound template like any other.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rspmn.availability import NeverTaken
from rspmn.circuit import StudentT
from rspmn.data.columns import Column
from rspmn.data.windows import Windows
from rspmn.learn.config import LearnConfig
from rspmn.learn.never_taken import never_taken
from rspmn.learn.numbers.follows import Logged, expected_next, next_categories
from rspmn.learn.numbers.grid import Grid, fit_grid, quantile_knots
from rspmn.learn.numbers.relevant import relevant_variables
from rspmn.learn.numbers.resolution import CHANGE, Solved, change_between, coarsest
from rspmn.learn.numbers.steps import Steps, steps_of
from rspmn.learn.numbers.successors import transitions
from rspmn.learn.numbers.template import Layout, model_of
from rspmn.learn.structure.learner import Learner
from rspmn.learn.structure.rows import Rows, table_of
from rspmn.learn.structure.smoothed_leaves import SmoothedLeaves
from rspmn.model import RSPMN
from rspmn.schema import Kind
from rspmn.types import Array, Ints

#: A node has at least this many logged steps on average.
STEPS_PER_NODE = 10.0
#: Numbers of knots that are tried, one after the other.
KNOTS = 3, 4, 5, 6, 8, 11, 16, 22, 32


@dataclass
class NumbersInfo:
    """What was found about states that are numbers."""

    relevant: tuple[str, ...] = ()  # the state variables that matter, the clearest first
    aside: tuple[str, ...] = ()  # those that do not
    grid: bool = False  # whether interface nodes are soft boxes
    knots: dict[str, tuple[float, ...]] = field(default_factory=dict)
    #: What decisions lose with each number of knots, in standard deviations of values.
    losses: dict[int, float] = field(default_factory=dict)


def relevant_numbers(
    windows: Windows, config: LearnConfig, noise: Sequence[str] = ()
) -> NumbersInfo:
    """Return which state variables matter, if some of them are numbers of many values.

    If a number matters, interface nodes are soft boxes of all that matters. If none does, numbers
    are set aside. `noise` are variables that are known not to matter.
    """
    schema = windows.schema
    known = [name for name in schema.information_sets[0] if name not in noise]
    numbers = {name for name in known if _is_number(windows, name, config)}
    if not numbers or config.numbers != "soft" or any(schema.information_sets[1:-1]):
        return NumbersInfo()
    steps = steps_of(windows, frozenset(numbers))
    steps = replace(steps, variables=steps.only(known))
    most = int(np.log(max(3.0, steps.counts.sum() / STEPS_PER_NODE)) / np.log(KNOTS[0]))
    declared = {name for law in schema.laws for name in law.variables}
    required = [name for name in schema.information_sets[0] if name in declared]
    relevant = tuple(relevant_variables(steps, max(1, most), required))
    grid = bool(numbers & set(relevant))
    names = schema.information_sets[0] if grid else numbers
    return NumbersInfo(relevant, tuple(n for n in names if n not in relevant), grid)


def _is_number(windows: Windows, name: str, config: LearnConfig) -> bool:
    column = windows.columns[name]
    if column.kind is not Kind.CONTINUOUS or name in config.leaves:
        return False
    return len(np.unique(column.data[~np.isnan(column.data)])) > config.bins


def learn_on_grid(
    windows: Windows, config: LearnConfig, info: NumbersInfo, deadline: float = math.inf
) -> RSPMN:
    """Return a model whose interface nodes are soft boxes of what matters.

    `info` says what matters; which knots were chosen is added to it.
    """
    names = [n for n in info.relevant if windows.columns[n].kind is Kind.CONTINUOUS]
    chosen = Chosen(names, [n for n in info.relevant if n not in names])
    steps = steps_of(windows, frozenset(names))
    solved, info.losses = _resolved(steps, chosen, deadline)
    info.knots = {name: tuple(k.tolist()) for name, k in zip(names, solved.grid.knots, strict=True)}
    return _model(windows, config, steps, chosen, solved)


def estimate_on_grid(
    windows: Windows, config: LearnConfig, knots: Mapping[str, Array], categories: Sequence[str]
) -> RSPMN:
    """Return the model of a grid that is given: the knots of its numbers, and its categories."""
    steps = steps_of(windows, frozenset(knots))
    chosen = Chosen([*knots], categories)
    solved = _solve(steps, chosen, tuple(knots.values()))
    return _model(windows, config, steps, chosen, solved)


@dataclass(frozen=True)
class Chosen:
    """The names of the variables of a grid."""

    numbers: Sequence[str]
    categories: Sequence[str]


def _model(
    windows: Windows, config: LearnConfig, steps: Steps, chosen: Chosen, solved: Solved
) -> RSPMN:
    columns, counts = windows.columns, windows.counts.astype(np.float64)
    table = table_of(columns, counts, config.bins, windows.schema.decisions)
    rows = Rows(table, steps.rows, steps.counts)
    learner = Learner(config, np.random.default_rng(0), rows, windows.schema.utility)
    layout = _layout(learner, rows, windows, steps, chosen)
    starts = _starts(windows, solved.grid, chosen)
    never: tuple[NeverTaken, ...] = ()
    if config.availability != "observed":
        here, least = solved.membership.likeliest(), config.unavailable_from
        never = never_taken(rows, windows.schema, here, solved.grid.size, least)
    builder = learner.builder
    return model_of(layout, solved.grid, solved.follows, solved.led, starts, builder, never)


def _resolved(steps: Steps, chosen: Chosen, deadline: float) -> tuple[Solved, dict[int, float]]:
    """Return the coarsest grid that is fine enough, and what decisions of each would lose."""
    total, dimension = float(steps.counts.sum()), len(chosen.numbers)
    solved = [_solve(steps, chosen, _knots(steps, chosen, KNOTS[0]))]
    for fine in KNOTS[1:]:
        needed = STEPS_PER_NODE * solved[0].grid.categories * fine**dimension
        if total < needed or time.monotonic() >= deadline:
            break
        solved.append(_solve(steps, chosen, _knots(steps, chosen, fine)))
        if change_between(*solved[-2:]) < CHANGE:
            break
    best, losses = coarsest(solved)
    return best, dict(zip(KNOTS, losses, strict=False))


def _knots(steps: Steps, chosen: Chosen, most: int) -> tuple[Array, ...]:
    return tuple(
        quantile_knots(v.values(), v.next_values(), steps.counts, most)
        for v in steps.only(chosen.numbers)
    )


def _solve(steps: Steps, chosen: Chosen, knots: tuple[Array, ...]) -> Solved:
    numbers, categories = steps.only(chosen.numbers), steps.only(chosen.categories)
    values = np.stack([v.values() for v in numbers], axis=1)
    after = np.stack([v.next_values() for v in numbers], axis=1)
    codes, sizes = _coded([v.column for v in categories], len(steps))
    next_codes, _ = _coded([v.after for v in categories], len(steps))
    grid, membership, filled = fit_grid(codes, sizes, values, knots, steps.counts)
    spread = steps.utility.spread
    log = Logged(
        filled, np.where(steps.ended[:, None], np.nan, after), codes, next_codes, steps.action,
        len(steps.actions), steps.ended, steps.utility.data.astype(np.float64),
        np.zeros(len(steps)) if spread is None else spread, steps.counts,
    )  # fmt: skip
    follows = expected_next(grid, membership, log)
    nexts = [next_categories(grid, membership, log, k) for k in range(len(categories))]
    led = transitions(grid, follows, nexts)
    return Solved(grid, follows, led, membership)


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
    return Layout(schema, domains, chosen.numbers, steps.actions, before, after)


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
