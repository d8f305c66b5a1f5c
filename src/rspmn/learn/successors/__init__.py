"""What follows each branch: the weights of S_L, by counts or by factors that are shared."""

from rspmn.learn.successors.counts import counts
from rspmn.learn.successors.factored import Future, FutureInfo, factored
from rspmn.learn.successors.tied_network import tied_network
from rspmn.learn.successors.transitions import Moves, Successors
from rspmn.learn.successors.untried import untried_branches

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
