"""What follows each branch: the weights of S_L, by counts or by factors that are shared."""

from rspmn.learn.successors.factored import Factored, FutureInfo
from rspmn.learn.successors.transitions import Counts, Successors, SuccessorWeights, Transitions

__all__ = ["Counts", "Factored", "FutureInfo", "SuccessorWeights", "Successors", "Transitions"]
