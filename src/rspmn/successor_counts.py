"""Counts behind a learned model: how often each outcome of a decision led to each interface node.

The weights of a template are estimates. What they were estimated from says how sure they are.
"""

import math
from dataclasses import dataclass

from rspmn.errors import CircuitError


@dataclass(frozen=True)
class SuccessorCounts:
    """Logged steps by outcome and successor.

    An *outcome* is a product node that has an S_L among its children: a utility and what follows.
    Outcomes are numbered in the order of the template's nodes.
    """

    starts: tuple[float, ...]  # [interfaces], episodes that began there
    outcome: tuple[int, ...]  # [edges]
    to: tuple[int, ...]  # [edges], interface node
    steps: tuple[float, ...]  # [edges], above 0
    #: The steps that factors shared by branches are worth; with 0, counts are all the evidence.
    strength: float = 0.0
    #: What the factors give each edge if one of its steps is left out. [edges], or ()
    left_out: tuple[float, ...] = ()
    #: The mass that the factors put on states of no interface node. [outcomes], or ()
    outside: tuple[float, ...] = ()
    #: Steps behind the least known of the factors. [outcomes], or ()
    pooled: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        edges = len(self.outcome)
        for name, numbers in (("to", self.to), ("steps", self.steps)):
            if len(numbers) != edges:
                raise CircuitError(f"counts: {edges} outcomes, but {len(numbers)} of {name!r}")
        if self.left_out and len(self.left_out) != edges:
            raise CircuitError(f"counts: {edges} outcomes, but {len(self.left_out)} left out")
        if len(self.outside) != len(self.pooled):
            raise CircuitError(
                f"counts: {len(self.outside)} of 'outside', but {len(self.pooled)} of 'pooled'"
            )
        for name in ("starts", "steps", "left_out", "outside", "pooled"):
            odd = [n for n in getattr(self, name) if not 0 <= n < math.inf]
            if odd:
                raise CircuitError(f"counts: {name}: expected numbers from 0, found {odd[0]}")
        if not 0 <= self.strength < math.inf:
            raise CircuitError(f"counts: expected a strength from 0, found {self.strength}")
        if edges and min(*self.outcome, *self.to) < 0:
            raise CircuitError("counts: expected outcomes and interface nodes from 0")
