"""Whether numbers of the state matter; what learns from them is imported where there are any."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rspmn.data.columns import Column
from rspmn.data.windows import Windows
from rspmn.learn.config import LearnConfig
from rspmn.learn.missing.complete import MOST_VALUES
from rspmn.schema import Kind

#: A node has at least this many logged steps on average.
STEPS_PER_NODE = 10.0


@dataclass
class NumbersInfo:
    """What was found about states that are numbers."""

    relevant: tuple[str, ...] = ()  # the state variables that matter, the clearest first
    aside: tuple[str, ...] = ()  # those that do not
    grid: bool = False  # whether interface nodes are soft boxes
    integers: tuple[str, ...] = ()  # integers of many values, which are numbers on a grid
    large: tuple[str, ...] = ()  # of those aside, what matters but makes states too many
    knots: dict[str, tuple[float, ...]] = field(default_factory=dict)
    circles: tuple[tuple[str, ...], ...] = ()  # numbers that are cosine and sine of an angle
    #: What decisions lose with each number of knots, in standard deviations of values.
    losses: dict[int, float] = field(default_factory=dict)
    #: What a model of half of the steps mispredicts of the other half, beyond noise.
    misses: tuple[str, ...] = ()


def relevant_numbers(
    windows: Windows, config: LearnConfig, noise: Sequence[str] = ()
) -> NumbersInfo:
    """Return which state variables matter, if some of them are numbers of many values.

    If a number matters, interface nodes are soft boxes of all that matters. If none does, numbers
    are set aside. Integers of many values are numbers beside others, and where they lack values
    that are too many to be drawn. `noise` are variables that are known not to matter.
    """
    schema = windows.schema
    known = [name for name in schema.information_sets[0] if name not in noise]
    many = [n for n in schema.information_sets[0] if _has_many_values(windows, n, config)]
    integers = tuple(n for n in many if windows.columns[n].kind is Kind.INTEGER)
    numbers = {*many} & {*known} - {*integers}
    if not numbers and any(_is_not_drawn(windows.columns[n]) for n in integers if n in known):
        numbers = {*integers} & {*known}
    if not numbers or config.numbers != "soft" or any(schema.information_sets[1:-1]):
        return NumbersInfo()
    from rspmn.learn.numbers.relevant import relevant_variables
    from rspmn.learn.numbers.size import KNOTS
    from rspmn.learn.numbers.steps import steps_of

    steps = steps_of(continuous(windows, integers), frozenset(many))
    steps = replace(steps, variables=steps.only(known))
    most = int(np.log(max(3.0, steps.counts.sum() / STEPS_PER_NODE)) / np.log(KNOTS[0]))
    declared = {*config.keep, *(name for law in schema.laws for name in law.variables)}
    required = [name for name in schema.information_sets[0] if name in declared]
    relevant, large = relevant_variables(steps, max(1, most), required)
    grid = bool(numbers & set(relevant))
    names = schema.information_sets[0] if grid else numbers - {*integers}
    return NumbersInfo(
        tuple(relevant), tuple(n for n in names if n not in relevant), grid,
        integers if grid else (), tuple(large) if grid else (),
    )  # fmt: skip


def _has_many_values(windows: Windows, name: str, config: LearnConfig) -> bool:
    """Return whether a variable is a number of more values than tests have bins."""
    column = windows.columns[name]
    if column.kind not in (Kind.CONTINUOUS, Kind.INTEGER) or name in config.leaves:
        return False
    return len(np.unique(column.data[~column.missing])) > config.bins


def _is_not_drawn(column: Column) -> bool:
    """Return whether what is missing is not drawn, as states would be too many."""
    return bool(column.missing.any()) and len(column.domain) > MOST_VALUES


def continuous(windows: Windows, names: Collection[str]) -> Windows:
    """Return the windows with some integers as continuous numbers."""

    def changed(columns: Mapping[str, Column]) -> dict[str, Column]:
        return {
            name: column.as_continuous() if name in names else column
            for name, column in columns.items()
        }

    return replace(
        windows, schema=windows.schema.with_kinds(dict.fromkeys(names, Kind.CONTINUOUS)),
        columns=changed(windows.columns), next_columns=changed(windows.next_columns),
    )  # fmt: skip
