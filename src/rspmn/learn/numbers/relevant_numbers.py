"""Which of the variables that matter are numbers, and how many of them a grid can hold."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rspmn.data.columns import Column
from rspmn.data.windows import Windows
from rspmn.errors import DataError
from rspmn.learn.config import LearnConfig
from rspmn.learn.missing.complete import MOST_VALUES
from rspmn.schema import Kind

#: A node has at least this many logged steps on average.
STEPS_PER_NODE = 10.0


@dataclass
class NumbersInfo:
    """What was found about states that are numbers."""

    relevant: tuple[str, ...] = ()  # the state variables that matter, the clearest first
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
    windows: Windows, config: LearnConfig, matter: Sequence[str], required: Collection[str]
) -> NumbersInfo:
    """Return what a grid is made of, if numbers of many values are among what matters.

    Integers of many values are numbers beside others, and where they lack values that are too many
    to be drawn.

    Parameters
    ----------
    windows
        The log.
    config
        The settings.
    matter
        The variables that matter, the clearest first.
    required
        Those of them without which there is to be no grid.
    """
    schema = windows.schema
    many = [n for n in schema.information_sets[0] if _has_many_values(windows, n, config)]
    integers = tuple(n for n in many if windows.columns[n].kind is Kind.INTEGER)
    numbers = {*many} & {*matter} - {*integers}
    if not numbers and any(_is_not_drawn(windows.columns[n]) for n in integers if n in matter):
        numbers = {*integers} & {*matter}
    if not numbers or config.numbers != "soft":
        return NumbersInfo()
    from rspmn.learn.numbers.size import KNOTS, GridSize
    from rspmn.learn.numbers.steps import steps_of

    steps = steps_of(continuous(windows, integers), frozenset(many))
    most = int(np.log(max(3.0, steps.counts.sum() / STEPS_PER_NODE)) / np.log(KNOTS[0]))
    kept = sorted(matter, key=lambda name: name not in required)
    kept = kept[: max(1, most, len(required))]
    while not (size := GridSize(steps, kept)).fits(KNOTS[0] ** size.numbers):
        others = [name for name in reversed(kept) if name not in required]
        if not others:
            raise DataError(
                f"{', '.join(kept)}: they are to be kept, or laws are about them, and states "
                "that differ by all their values need too much memory: group their values, or "
                'learn with numbers="intervals"'
            )
        values = {v.name: len(v.column.domain) or KNOTS[0] for v in steps.only(others)}
        kept.remove(max(others, key=values.__getitem__))
    if not numbers & {*kept}:
        return NumbersInfo(large=tuple(name for name in matter if name in numbers))
    large = tuple(name for name in matter if name not in kept)
    return NumbersInfo(tuple(kept), True, integers, large)


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
