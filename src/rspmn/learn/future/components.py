"""Components: which variables of the next step depend on each other, all before them given.

Variables that do are drawn together, as one; others each for themselves.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rspmn.data.coding import Column, one_key
from rspmn.data.states import States
from rspmn.learn.independence import pair_statistics
from rspmn.learn.learn_spn import components
from rspmn.learn.rows import Rows, RowTable, numbers_of, table_of
from rspmn.schema import Kind

__all__ = ["Component", "find_components"]

Ints = NDArray[np.int64]

#: How likely it may be to join any two variables that are independent. Where contexts are many and
#: hardly seen, statistics spread more than they should: it happens some times as often.
ALPHA = 0.001


@dataclass(frozen=True, eq=False)
class Component:
    """Variables that are drawn together, and the value that they have in each state."""

    names: tuple[str, ...]
    values: Ints  # [num_states], numbered from 0
    size: int


def find_components(
    table: RowTable, states: States, after: Ints, given: Ints, weights: NDArray[np.float64]
) -> list[Component]:
    """Return the components of the state, from moves to states.

    Parameters
    ----------
    table
        Of the windows: its codes are those that the next state's values get, too.
    states
        All states.
    after
        The state that each move leads to. [moves]
    given
        A number for all that was before it. [moves]
    weights
        How often each move occurred. [moves]
    """
    codes = {name: state_codes(table, name, column) for name, column in states.columns.items()}
    varying = [name for name, code in codes.items() if np.ptp(code[after]) > 0]
    groups = [tuple(name for name in codes if name not in varying)]  # of one value, together
    groups += _dependent(varying, codes, after, given, weights)
    found = []
    for names in filter(None, groups):
        key = one_key([(codes[name], int(codes[name].max()) + 1) for name in names])
        values, which = np.unique(key, return_inverse=True)
        found.append(Component(names, which.astype(np.int64), len(values)))
    return found


def _dependent(
    names: list[str], codes: dict[str, Ints], after: Ints, given: Ints, weights: NDArray[np.float64]
) -> list[tuple[str, ...]]:
    """Join variables that depend on each other: G and X², added up over all that was before."""
    if len(names) < 2:
        return [tuple(names)]
    columns = {
        name: Column(Kind.CATEGORICAL, codes[name][after] - 1, tuple(range(int(codes[name].max()))))
        for name in names
    }
    rows = Rows(table_of(columns, weights, bins=2), np.arange(len(after)), weights)
    p = pair_statistics(rows, names, names, given).p_values()
    pairs = len(names) * (len(names) - 1) / 2
    dependent = (p < ALPHA / pairs) & ~np.eye(len(names), dtype=bool)
    return [tuple(group) for group in components(names, dependent)]


def state_codes(table: RowTable, name: str, column: Column) -> Ints:  # [n]
    """Return the codes that a variable's values would have in a table, plus 1; 0 if missing."""
    if name not in table.ordered:
        return column.data.astype(np.int64) + 1
    known, code = numbers_of(table.columns[name]), table.codes[name]
    low, high = np.full(table.sizes[name], np.inf), np.full(table.sizes[name], -np.inf)
    here = code >= 0
    np.minimum.at(low, code[here], known[here])
    np.maximum.at(high, code[here], known[here])
    numbers = numbers_of(column)
    found = np.searchsorted((high[:-1] + low[1:]) / 2, numbers) + 1
    return np.where(np.isnan(numbers), 0, found)
