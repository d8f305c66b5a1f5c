"""The interface nodes of the final template, numbered: learned, at the edge, marked."""

from dataclasses import dataclass

import numpy as np

from rspmn.data.episodes import Followed
from rspmn.learn.frontier import Edge
from rspmn.learn.routing import Routes
from rspmn.learn.two_step_rows import TwoSteps
from rspmn.types import Ints


@dataclass(frozen=True, eq=False)
class Numbering:
    """The interface nodes of the final template, in order: learned, at the edge, marked."""

    learned: int  # 0 to learned - 1
    acted_in: int  # so many more, one for each state acted in without a known successor
    frontier: int | None  # all states never acted in
    end: int | None
    unknown: int | None
    of_states: Ints  # [num_states]
    of_successors: Ints  # [num_windows], -1 where the successor is unknown

    @property
    def total(self) -> int:
        """The number of interface nodes."""
        marked = [i for i in (self.frontier, self.end, self.unknown) if i is not None]
        return self.learned + self.acted_in + len(marked)


def number_interfaces(two: TwoSteps, routes: Routes, edge: Edge, learned: int) -> Numbering:
    """Give every interface node of the final template its number."""
    count = learned + len(edge.acted_in)
    marked: list[int | None] = []
    ended = two.windows.followed == Followed.END
    for needed in (len(edge.states) > 0, bool(ended.any()), len(edge.at) > 0):
        marked.append(count if needed else None)
        count += needed
    frontier, end, unknown = marked
    of_states = routes.of_states.copy()
    of_states[edge.acted_in] = learned + np.arange(len(edge.acted_in))
    if frontier is not None:
        of_states[edge.states] = frontier
    after = routes.states.of_successors
    of_successors = np.where(after >= 0, of_states[after], -1)
    if end is not None:
        of_successors[ended] = end
    return Numbering(learned, len(edge.acted_in), frontier, end, unknown, of_states, of_successors)
