"""Which interface node a state is in: the likelihood of I0 under every root, from tables."""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from rspmn.circuit import (
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
from rspmn.infer.compiled.layers import CompiledLikelihood, compile_likelihood
from rspmn.infer.compiled.leaf_tables import Distinct, LeafTable
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
            case Max() | Utility() | Latent():
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
        with np.errstate(divide="ignore"):
            self.prior: Array = np.log(visits_of_states(model))  # [interfaces]
        self.tables = _tables(self.network, self.compiled)

    @cached_property
    def compiled(self) -> CompiledLikelihood:
        """The likelihood of states, where there are no tables."""
        return compile_likelihood(self.network)

    def scores(self, known: Mapping[str, Value]) -> Array:  # [interfaces]
        """Return log(visits · likelihood) of each interface node, given a state or part of it."""
        if self.tables is None:
            columns = {n: Distinct([value], np.zeros(1, np.int64)) for n, value in known.items()}
            return np.asarray(self.compiled(columns, 1)[:, 0] + self.prior)
        found = self.prior
        for name, value in known.items():
            found = found + self.tables[name].column(value)
        return found

    def routes(self, table: Table) -> tuple[Ints, Array, list[dict[str, Value]]]:
        """Return the distinct states of a table, and the scores of each.

        Returned are the number of each row's state [rows], the scores [interfaces, states], and
        the states themselves.
        """
        columns = {}
        for name in self.names:
            columns[name] = table.coded(name, self.schema.kinds.get(name))
        groups = joint_groups(columns.values(), table.rows)
        first = groups.members()
        distinct = {name: column.take(first) for name, column in columns.items()}
        coded = {name: Distinct.of(column) for name, column in distinct.items()}
        scores = self.compiled(coded, len(first)) + self.prior[:, None]
        decoded = {name: column.decode() for name, column in distinct.items()}
        states = [
            {name: value for name in self.names if (value := decoded[name][k]) is not None}
            for k in range(len(first))
        ]
        return groups.codes.astype(np.int64), scores, states


class _Variable:
    """The log-probability of a variable's values under each root."""

    def __init__(self, table: LeafTable, leaf_of_root: Ints) -> None:
        self.table, self.leaf_of_root = table, leaf_of_root
        self.by_value = np.ascontiguousarray(table.table.T[:, leaf_of_root])  # [values + 1, roots]

    def column(self, value: Value) -> Array:  # [roots]
        if self.table.numeric:
            return np.asarray(self.table.log_probs([value])[self.leaf_of_root, 0])
        return np.asarray(self.by_value[self.table.place.get(value, -1)])


def _tables(network: Network, compiled: CompiledLikelihood) -> dict[str, _Variable] | None:
    """Return a table for each variable, if each root has one leaf for each."""
    leaf_of_root: dict[str, list[int]] = {name: [] for name in compiled.leaves}
    for root in network.roots:
        found = _leaves_below(network, root)
        if found is None or len(found) != len(leaf_of_root):
            return None
        for name, leaf in found.items():
            leaf_of_root[name].append(leaf)
    places = {n: {int(i): k for k, i in enumerate(t.nodes)} for n, t in compiled.leaves.items()}
    return {
        name: _Variable(compiled.leaves[name], np.array([places[name][i] for i in leaves]))
        for name, leaves in leaf_of_root.items()
    }


def _leaves_below(network: Network, index: int) -> dict[str, int] | None:
    """Return the leaves of a product of leaves by variable; None if it is anything else."""
    found: dict[str, int] = {}
    waiting = [index]
    for here in waiting:
        node = network.nodes[here]
        if isinstance(node, Leaf):
            found[node.variable] = here
        elif isinstance(node, Product):
            waiting.extend(node.children)
        else:
            return None
    return found
