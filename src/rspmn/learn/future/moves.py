"""Moves: logged steps, each from the place of an S_L to the interface node that followed.

The weights of every S_L are one replaceable function of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rspmn.data.states import States
from rspmn.learn.rows import RowTable
from rspmn.schema import Schema

__all__ = ["Moves", "Successors", "at_sites"]

Ints = NDArray[np.int64]
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Moves:
    """What was logged at the places of all S_L."""

    schema: Schema
    table: RowTable  # of the windows; row i is window i
    states: States
    of_states: Ints  # [num_states], the interface node of each, below 0 if none
    #: Whether the states of an interface node are all that have certain values of each variable.
    #: Otherwise, and for single states at the edge of the log, each state stands for itself.
    boxes: NDArray[np.bool_]  # [interfaces]
    end: int | None  # the interface node END
    sites: int  # how many S_L there are
    site: Ints  # [moves], the S_L of each
    window: Ints  # [moves]
    to: Ints  # [moves], the interface node that followed
    counts: Array  # [moves], how often

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
