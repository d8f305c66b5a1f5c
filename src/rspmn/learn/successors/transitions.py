"""Moves: logged steps, each from the place of an S_L to the interface node that followed.

The weights of every S_L are one replaceable function of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rspmn.data.columns import Column
from rspmn.data.states import States
from rspmn.learn.structure.rows import RowTable, numbers_of
from rspmn.schema import Kind, Schema
from rspmn.types import Array, Bools, Ints


@dataclass(frozen=True, eq=False)
class Moves:
    """What was logged at the places of all S_L."""

    schema: Schema
    table: RowTable  # of the windows; row i is window i
    states: States
    of_states: Ints  # [num_states], the interface node of each, below 0 if none
    #: Whether the states of an interface node are all that have certain values of each variable.
    #: Otherwise, and for single states at the edge of the log, each state stands for itself.
    boxes: Bools  # [interfaces]
    end: int | None  # the interface node END
    sites: int  # how many S_L there are
    site: Ints  # [moves], the S_L of each
    window: Ints  # [moves]
    to: Ints  # [moves], the interface node that followed
    counts: Array  # [moves], how often

    @cached_property
    def state_codes(self) -> dict[str, Ints]:  # [num_states] each
        """A code for each value of each state variable; 0 where it is missing.

        Numbers that tests look at in bins have the codes of the intervals that interface nodes
        divide them into: those of one code are in the same nodes.
        """
        return {name: self._coded(name, column) for name, column in self.states.columns.items()}

    def _coded(self, name: str, column: Column) -> Ints:
        if name in self.table.binned:
            return self._intervals(numbers_of(column))
        if column.kind is not Kind.CONTINUOUS:
            return np.asarray(column.data, dtype=np.int64) + 1
        codes = np.unique(column.data, return_inverse=True)[1].ravel() + 1
        return np.where(np.isnan(column.data), 0, codes)

    def _intervals(self, numbers: Array) -> Ints:
        """Return how many nodes' intervals each number has begun or left behind, as a code."""
        known = (self.of_states >= 0) & ~np.isnan(numbers)
        low, high = np.full((2, self.interfaces), np.nan)
        np.fmin.at(low, self.of_states[known], numbers[known])
        np.fmax.at(high, self.of_states[known], numbers[known])
        begun = np.searchsorted(np.sort(low[~np.isnan(low)]), numbers, side="right")
        left = np.searchsorted(np.sort(high[~np.isnan(high)]), numbers, side="left")
        codes = np.unique(begun + left, return_inverse=True)[1].ravel() + 1
        return np.where(np.isnan(numbers), 0, codes)

    def codes_of(self, name: str, windows: Ints) -> tuple[Ints, int]:
        """Return the codes of a variable in some windows, and how many codes there are."""
        if name in self.states.columns:
            codes = self.state_codes[name]
            return codes[self.states.of_steps[windows]], int(codes.max(initial=0)) + 1
        return self.table.codes[name][windows].astype(np.int64) + 1, self.table.sizes[name] + 1

    @property
    def interfaces(self) -> int:
        """The number of interface nodes."""
        return len(self.boxes)


@dataclass(frozen=True, eq=False)
class Successors:
    """The weights of all S_L, those of one after the other."""

    starts: Ints  # [num_sites + 1]; site k has the edges starts[k]:starts[k + 1]
    interfaces: Ints  # [num_edges]
    weights: Array  # [num_edges], sum to 1 for each site
    counts: Array  # [num_edges], the logged steps behind each


def at_sites(sites: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Return the site and the window of every move, given the windows behind each site."""
    lengths = np.array([len(site) for site in sites], dtype=np.int64)
    return np.repeat(np.arange(len(sites)), lengths), np.concatenate(sites)
