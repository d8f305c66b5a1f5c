"""Whether numbers of the state matter; what learns from them is imported where there are any."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rspmn.data.windows import Windows
from rspmn.learn.config import LearnConfig
from rspmn.schema import Kind

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
    large: tuple[str, ...] = ()  # of those aside, what matters but makes states too many
    knots: dict[str, tuple[float, ...]] = field(default_factory=dict)
    circles: tuple[tuple[str, ...], ...] = ()  # numbers that are cosine and sine of an angle
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
    from rspmn.learn.numbers.relevant import relevant_variables
    from rspmn.learn.numbers.steps import steps_of

    steps = steps_of(windows, frozenset(numbers))
    steps = replace(steps, variables=steps.only(known))
    most = int(np.log(max(3.0, steps.counts.sum() / STEPS_PER_NODE)) / np.log(KNOTS[0]))
    declared = {*config.keep, *(name for law in schema.laws for name in law.variables)}
    required = [name for name in schema.information_sets[0] if name in declared]
    relevant, large = relevant_variables(steps, max(1, most), required)
    grid = bool(numbers & set(relevant))
    names = schema.information_sets[0] if grid else numbers
    aside = tuple(name for name in names if name not in relevant)
    return NumbersInfo(tuple(relevant), aside, grid, tuple(large) if grid else ())


def _is_number(windows: Windows, name: str, config: LearnConfig) -> bool:
    column = windows.columns[name]
    if column.kind is not Kind.CONTINUOUS or name in config.leaves:
        return False
    return len(np.unique(column.data[~np.isnan(column.data)])) > config.bins
