"""Recurrent models written as what each action of each state earns and where it leads."""

from rspmn.circuit import Categorical, NetworkBuilder
from rspmn.end_nodes import end_root, weighted_top
from rspmn.model import RSPMN
from rspmn.schema import Schema

SCHEMA = Schema([["x"], ["a"]], ["a"], "u")

#: Of each action: what it earns, and the probability of each next state.
Moves = dict[str, tuple[float, dict[int, float]]]


def chain(moves: list[Moves], end: bool = False) -> RSPMN:
    """Make a model of states x = 0, 1, …; with `end` the state after the last is END."""
    b = NetworkBuilder()

    def leads(earns: float, to: dict[int, float]) -> int:
        latents = [b.latent(i) for i in to]
        return b.product([b.utility("u", earns), b.sum(latents, list(to.values()))])

    roots = [
        b.product(
            [
                b.leaf("x", Categorical.certain(i)),
                b.max("a", {name: leads(*move) for name, move in branches.items()}),
            ]
        )
        for i, branches in enumerate(moves)
    ]
    if end:
        roots.append(end_root(b, SCHEMA, len(moves)))
    top = weighted_top([1.0] + [0.0] * (len(roots) - 1))
    return RSPMN(SCHEMA, top, b.build(*roots))
