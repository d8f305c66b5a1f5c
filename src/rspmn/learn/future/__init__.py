"""What follows each branch: the weights of S_L, by counts or by factors that are shared."""

from rspmn.learn.future.counts import counts
from rspmn.learn.future.factored import Future, FutureInfo, factored
from rspmn.learn.future.moves import Moves, Successors
from rspmn.learn.future.tied_network import tied_network
from rspmn.learn.future.untried import untried_branches

__all__ = [
    "Future",
    "FutureInfo",
    "Moves",
    "Successors",
    "counts",
    "factored",
    "tied_network",
    "untried_branches",
]
