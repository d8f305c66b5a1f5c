"""The two-step network with tied factors: for figures and study.

In the place of each S_L stands the product of the next step's factors. Contexts of one leaf share
its distribution, so its nodes are stored once, whatever branches they stand below.
"""

import numpy as np

from rspmn.circuit import Categorical, Network, NetworkBuilder
from rspmn.circuit.rewrite import graft
from rspmn.learn.structure.rows import weigh
from rspmn.learn.successors.contexts import contexts_of
from rspmn.learn.successors.factors import Factors
from rspmn.learn.successors.transitions import Moves
from rspmn.values import Value


def tied_network(one_step: Network, moves: Moves, factors: Factors, mark: str = "'") -> Network:
    """Return the one-step network with the factors of the next state in the places of its latents.

    Given that there is one: where steps may be the last, it is the state that follows others. A
    site at which every step was the last is left out. A variable of the next step has a mark after
    its name.
    """
    builder = NetworkBuilder()
    drawn = _Leaves(builder, moves, factors, mark)
    goes_on = moves.to != (-1 if moves.end is None else moves.end)
    site, window, counts = moves.site[goes_on], moves.window[goes_on], moves.counts[goes_on]
    contexts, context = contexts_of(moves, factors.contexts.names, window)
    leaves = factors.leaves(contexts)[:, context]  # [components, moves]
    combination, which = np.unique(leaves, axis=1, return_inverse=True)
    products = [
        builder.product([drawn.leaf(k, int(leaf)) for k, leaf in enumerate(column)])
        for column in combination.T
    ]
    weights = weigh(
        site * len(products) + which.ravel(), counts, moves.sites * len(products)
    ).reshape(moves.sites, -1)

    def successor(number: int) -> int | None:
        chosen = np.flatnonzero(weights[number])
        if not len(chosen):
            return None
        share = weights[number, chosen] / weights[number].sum()
        children = [products[k] for k in chosen.tolist()]
        return children[0] if len(children) == 1 else builder.sum(children, share.tolist())

    root = graft(builder, one_step, rename=None, latent=successor)[one_step.root]
    assert root is not None, "the step's own variables are never left out"
    return builder.build(root)


class _Leaves:
    """The distribution of a component in a leaf of its tree, as nodes."""

    def __init__(self, builder: NetworkBuilder, moves: Moves, factors: Factors, mark: str) -> None:
        self.builder, self.factors, self.mark = builder, factors, mark
        self.columns = moves.states.columns
        self.made: dict[tuple[int, int], int] = {}

    def leaf(self, component: int, leaf: int) -> int:
        """Add the distribution, once."""
        if (component, leaf) not in self.made:
            self.made[component, leaf] = self._added(component, leaf)
        return self.made[component, leaf]

    def _added(self, component: int, leaf: int) -> int:
        part = self.factors.components[component]
        row = self.factors.tied.counts[[leaf]]
        chances = (row.data / row.data.sum()).tolist()
        values = [self._values(component, value) for value in row.indices.tolist()]
        if len(part.names) == 1:
            single = tuple(value for (value,) in values)
            return self.builder.leaf(part.names[0] + self.mark, Categorical(single, chances))
        together = [
            self.builder.product(
                [
                    self.builder.leaf(name + self.mark, Categorical.certain(value))
                    for name, value in zip(part.names, joint, strict=True)
                ]
            )
            for joint in values
        ]
        return together[0] if len(together) == 1 else self.builder.sum(together, chances)

    def _values(self, component: int, value: int) -> list[Value]:
        """Return what the variables of a component are, as one of the states has them."""
        part = self.factors.components[component]
        state = np.flatnonzero(part.values == value)[:1]
        found = (self.columns[name].take(state).decode()[0] for name in part.names)
        return ["missing" if value is None else value for value in found]
