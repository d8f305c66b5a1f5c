"""The networks of each step of LearnRSPMN, for figures and study."""

from dataclasses import dataclass

import numpy as np

from rspmn.circuit import Categorical, Network, NetworkBuilder
from rspmn.circuit.rewrite import graft
from rspmn.data.keys import group_weights
from rspmn.learn.estimate import Estimated
from rspmn.learn.one_step import OneStep
from rspmn.learn.successors.priors import Factors
from rspmn.learn.successors.transitions import Transitions, contexts_of
from rspmn.values import Value

#: What the names of a successor's variables end with.
PRIME = "'"


@dataclass(frozen=True)
class Stages:
    """The networks of each step."""

    two_step: Network  # Step 1; a successor's variable has a prime after its name
    one_step: Network  # Step 2; latent k is the place of the k-th S_L
    top: Network  # Step 2; all interface nodes alike, END too. Step 4 weighs it: `RSPMN.top`
    initial: Network  # Step 3
    final: Network  # Step 4
    tied: Network | None = None  # Step 1 again, successors being products of shared factors


def tied_network(one_step: OneStep, found: Estimated) -> Network | None:
    """Return the two-step network in which successors are products of factors, if there are any.

    Contexts in one leaf share its distribution, so its nodes are stored once, whatever branches
    they are below. Where steps may be the last, the network is that of the others. An S_L at which
    every step was the last is left out. A variable of the next step has a prime after its name.
    """
    transitions, factors = found.transitions, found.weights.factors
    if factors is None:
        return None
    of_window = np.full(len(one_step.learned_in), -1)  # the S_L that each window reached
    of_window[transitions.window] = transitions.site
    builder = NetworkBuilder()
    drawn = _Leaves(builder, transitions, factors)
    goes_on = ~transitions.over
    site, window, counts = (
        transitions.site[goes_on],
        transitions.window[goes_on],
        transitions.counts[goes_on],
    )
    contexts, context = contexts_of(transitions, factors.contexts.names, window)
    leaves = factors.leaves(contexts)[:, context]  # [components, transitions]
    combination, which = np.unique(leaves, axis=1, return_inverse=True)
    products = [
        builder.product([drawn.leaf(k, int(leaf)) for k, leaf in enumerate(column)])
        for column in combination.T
    ]
    weights = group_weights(
        site * len(products) + which.ravel(), counts, transitions.sites * len(products)
    ).reshape(transitions.sites, -1)

    def successor(latent: int) -> int | None:
        number = int(of_window[one_step.sites[latent]].max(initial=-1))
        chosen = np.flatnonzero(weights[number]) if number >= 0 else np.empty(0, dtype=np.int64)
        if not len(chosen):
            return None
        share = weights[number, chosen] / weights[number].sum()
        children = [products[k] for k in chosen.tolist()]
        return children[0] if len(children) == 1 else builder.sum(children, share.tolist())

    root = graft(builder, one_step.network, rename=None, latent=successor)[one_step.network.root]
    assert root is not None, "the step's own variables are never left out"
    return builder.build(root)


class _Leaves:
    """The distribution of a component in a leaf of its tree, as nodes."""

    def __init__(self, builder: NetworkBuilder, transitions: Transitions, factors: Factors) -> None:
        self.builder, self.factors = builder, factors
        self.columns = transitions.states.columns
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
            return self.builder.leaf(part.names[0] + PRIME, Categorical(single, chances))
        together = [
            self.builder.product(
                [
                    self.builder.leaf(name + PRIME, Categorical.certain(value))
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
