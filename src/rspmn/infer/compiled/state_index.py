"""Which interface node a state is in: the likelihood of I0 under every root."""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from rspmn.circuit import (
    FactoredLatents,
    Latent,
    Leaf,
    Max,
    Network,
    NetworkBuilder,
    Node,
    Product,
    Sum,
    Utility,
)
from rspmn.data.keys import joint_groups
from rspmn.data.tables import Table
from rspmn.end_nodes import visits_of_states
from rspmn.infer.compiled.beliefs import NONE, SEVERAL, Beliefs, Routes
from rspmn.infer.compiled.layers import CompiledLikelihood, compile_likelihood
from rspmn.infer.compiled.leaf_tables import Distinct
from rspmn.infer.compiled.state_products import Products, products_below
from rspmn.model import RSPMN
from rspmn.types import Array, Ints
from rspmn.values import Value


def state_part(template: Network, roots: Sequence[Sequence[int]] | None = None) -> Network:
    """Return the distribution, in each root, of what is known before the first decision.

    `roots` are the children of each root, where the template has none of its own yet.
    """
    builder = NetworkBuilder()
    one = builder.product([])
    placed: dict[int, int] = {}

    def copy(index: int) -> int:
        if index not in placed:
            placed[index] = made(template.nodes[index])
        return placed[index]

    def made(node: Node) -> int:
        match node:
            case Max() | Utility() | Latent() | FactoredLatents():
                return one
            case Leaf():
                return builder.add(node)
            case Product():
                below = [copy(child) for child in node.children]
                return builder.product([child for child in below if child != one])
            case Sum():
                below = [copy(child) for child in node.children]
                return below[0] if len(set(below)) == 1 else builder.sum(below, node.weights)

    if roots is None:
        return builder.build(*(copy(root) for root in template.roots))
    states = [[c for child in children if (c := copy(child)) != one] for children in roots]
    return builder.build(*map(builder.product, states))


class StateIndex:
    """Finds interface nodes by state; they are weighed by how often the log visited them."""

    def __init__(self, model: RSPMN) -> None:
        self.names = model.schema.information_sets[0]
        self.schema = model.schema
        self.network = state_part(model.template)
        visits = visits_of_states(model)
        with np.errstate(divide="ignore"):
            self.prior: Array = np.log(visits)  # [interfaces]
        self._products = self._as_products(np.flatnonzero(visits))

    def _as_products(self, nodes: Ints) -> Products | None:
        """Return the states as mixtures of products; None if they are too many."""
        parts = products_below(self.network, [self.network.roots[k] for k in nodes.tolist()])
        if parts is None:
            return None
        return Products(self.names, self.network, nodes, parts, self.prior)

    @cached_property
    def compiled(self) -> CompiledLikelihood:
        """The likelihood of states under every root."""
        return compile_likelihood(self.network)

    def belief(self, known: Mapping[str, Value]) -> Beliefs:
        """Return which nodes a state, or part of one, may be in; each node is there once."""
        if self._products is not None:
            return self._products.belief(known)
        columns = {n: Distinct([value], np.zeros(1, np.int64)) for n, value in known.items()}
        return Beliefs.of_one(
            np.arange(len(self.prior)), self.compiled(columns, 1)[:, 0] + self.prior
        )

    def routes(self, table: Table) -> Routes:
        """Return the distinct states of a table, and what their beliefs are found by."""
        columns = {}
        for name in self.names:
            columns[name] = table.coded(name, self.schema.kinds.get(name))
        if self._products is not None:
            return self._products.routes(columns, table.rows)
        groups = joint_groups(columns.values(), table.rows)
        first = groups.members()
        coded = {name: Distinct.of(column.take(first)) for name, column in columns.items()}
        logs = self.compiled(coded, len(first)) + self.prior[:, None]

        def beliefs_of(part: Ints) -> Beliefs:
            nodes = np.tile(np.arange(len(logs)), len(part))
            counts = np.full(len(part), len(logs))
            return Beliefs.of_logs(counts, nodes, logs[:, part].T.ravel())

        possible = np.count_nonzero(logs > -np.inf, axis=0)
        node = np.where(possible == 0, NONE, np.where(possible > 1, SEVERAL, logs.argmax(axis=0)))
        pairs = np.full(len(first), len(logs))
        return Routes(columns, groups.codes.astype(np.int64), first, node, pairs, beliefs_of)
