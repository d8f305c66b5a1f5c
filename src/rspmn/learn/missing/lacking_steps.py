"""Steps as codes: what is known of each, and what has been drawn for what is not."""

from dataclasses import dataclass, replace

import numpy as np

from rspmn.context_trees import Contexts
from rspmn.data.columns import MISSING, Column
from rspmn.data.episodes import Followed
from rspmn.data.keys import joint_key
from rspmn.data.windows import Windows, group_windows
from rspmn.schema import Kind
from rspmn.types import Array, Bools, Ints

#: Equal steps that lack values are drawn for in at most so many parts.
PARTS = 64
#: More distinct utilities than MOST_UTILITIES are compared in BINS bins.
MOST_UTILITIES, BINS = 64, 16


@dataclass(frozen=True, eq=False)
class CodedSteps:
    """Steps of a log: rows of one weight each. 0 is the code of a missing value.

    `state` and `next` hold what is known, and then what was drawn.
    """

    names: tuple[str, ...]  # the variables of a state
    sizes: Ints  # [variables], the number of codes of each
    state: Ints  # [rows, variables]
    next: Ints  # [rows, variables], of the successor; 0 where there is none
    lacking: Bools  # [rows, variables], which of the state are drawn
    next_lacking: Bools  # [rows, variables]
    made: Ints  # [rows], the number of the decisions
    num_made: int
    outcome: Ints  # [rows], the utility, and whether and how the episode went on
    num_outcomes: int
    first: Bools  # [rows], whether an episode begins
    weight: Array  # [rows]

    def contexts(self) -> tuple[Contexts, Ints]:
        """Return the distinct pairs of a state and decisions, and that of each row."""
        codes = np.column_stack([self.state, self.made])
        first, which = distinct_rows(codes)
        return self.contexts_of(codes[first]), which

    def contexts_of(self, codes: Ints) -> Contexts:
        """Return states and decisions, one pair a row, as contexts."""
        return Contexts((*self.names, "made"), np.append(self.sizes, self.num_made), codes)


def distinct_rows(codes: Ints) -> tuple[Ints, Ints]:
    """Return the first of all equal rows, and the number of each row among them."""
    columns = [(column, int(column.max(initial=0)) + 1) for column in codes.T]
    _, first, which = np.unique(joint_key(columns), return_index=True, return_inverse=True)
    return first, which.ravel()


def lacks_values(windows: Windows) -> Bools:  # [num_windows]
    """Return which windows lack a value of their state, or of the one that followed."""
    lacking, followed = np.zeros(len(windows), dtype=bool), windows.followed <= Followed.STATE
    for name, column in windows.next_columns.items():
        lacking |= windows.columns[name].missing | (column.missing & followed)
    return lacking


def unrolled(windows: Windows) -> Windows:
    """Return windows of which those that lack values have a row for each step, or some of them.

    First steps of episodes have rows of their own.
    """
    lacking = lacks_values(windows)
    of, counts, starts = [], [], []
    for first in (True, False):
        number = windows.starts if first else windows.counts - windows.starts
        parts = np.where(lacking, np.minimum(number, PARTS), np.minimum(number, 1))
        row = np.repeat(np.arange(len(windows)), parts)
        place = np.arange(len(row)) - np.repeat(np.cumsum(parts) - parts, parts)
        share = number[row] // parts[row] + (place < number[row] % parts[row])
        of.append(row)
        counts.append(share)
        starts.append(share if first else np.zeros_like(share))
    row = np.concatenate(of)
    counts_of, starts_of = np.concatenate(counts), np.concatenate(starts)
    return replace(windows.take(row), counts=counts_of, starts=starts_of)


def steps_of(windows: Windows) -> CodedSteps:
    """Return the steps of windows, one row for each."""
    schema = windows.schema
    names = schema.information_sets[0]
    here = np.column_stack([_codes(windows.columns[name]) for name in names])
    after = np.column_stack([_codes(windows.next_columns[name]) for name in names])
    goes_on = windows.followed <= Followed.STATE
    made = np.column_stack([_codes(windows.columns[name]) for name in schema.decisions])
    distinct, number = np.unique(made, axis=0, return_inverse=True)
    utility = _utility_codes(windows.columns[schema.utility].numbers())
    outcome = utility * len(Followed) + np.where(goes_on, 0, windows.followed)
    _, outcome = np.unique(outcome, return_inverse=True)
    return CodedSteps(
        names, np.maximum(here.max(axis=0), after.max(axis=0)) + 1, here, after,
        here == 0, (after == 0) & goes_on[:, None], number.ravel(), len(distinct),
        outcome.ravel(), int(outcome.max()) + 1, windows.starts > 0,
        windows.counts.astype(np.float64),
    )  # fmt: skip


def written(windows: Windows, steps: CodedSteps) -> Windows:
    """Return windows with what was drawn in the place of what they lack."""

    def filled(column: Column, codes: Ints, lacking: Bools) -> Column:
        data = column.data.copy()
        data[lacking] = codes[lacking] - 1
        return replace(column, data=data)

    columns, following = dict(windows.columns), dict(windows.next_columns)
    for k, name in enumerate(steps.names):
        columns[name] = filled(columns[name], steps.state[:, k], steps.lacking[:, k])
        following[name] = filled(following[name], steps.next[:, k], steps.next_lacking[:, k])
    return group_windows(replace(windows, columns=columns, next_columns=following))


def _codes(column: Column) -> Ints:
    assert column.kind is not Kind.CONTINUOUS, "states of finitely many values"
    return column.data.astype(np.int64) - MISSING


def _utility_codes(numbers: Array) -> Ints:
    """Return the number of each utility, or of its bin."""
    distinct, codes = np.unique(numbers, return_inverse=True)
    if len(distinct) <= MOST_UTILITIES:
        return codes.ravel()
    edges = np.unique(np.quantile(numbers, np.arange(1, BINS) / BINS))
    return np.searchsorted(edges, numbers, side="right")
