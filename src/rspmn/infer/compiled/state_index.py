"""Which interface node a state is in: the likelihood of I0 under every root."""

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from rspmn.circuit import (
    Network,
)
from rspmn.data.columns import Column
from rspmn.data.keys import joint_groups
from rspmn.data.tables import Table
from rspmn.end_nodes import Template, visits_of_states
from rspmn.infer.compiled.beliefs import SEVERAL, Beliefs, Pairs, Routes
from rspmn.infer.compiled.layers import CompiledLikelihood, compile_likelihood
from rspmn.infer.compiled.leaf_tables import Distinct
from rspmn.infer.compiled.relations import ranges
from rspmn.infer.compiled.state_part import products_below, state_part
from rspmn.infer.compiled.state_products import Products
from rspmn.infer.node_values import values_in_nodes
from rspmn.schema import Schema
from rspmn.types import Array, Ints
from rspmn.values import Value


class StateIndex:
    """Finds interface nodes by state; they are weighed by how often the log visited them.

    `schema`: the variables; those of the first information set are a state. `network`: the
    distribution of states in each interface node, its roots: see `state_part`. `visits`: the weight
    of each interface node; those of weight 0 are left out [interfaces].
    """

    def __init__(self, schema: Schema, network: Network, visits: Array) -> None:
        self.names = schema.information_sets[0]
        self.schema, self.network = schema, network
        with np.errstate(divide="ignore"):
            self.prior: Array = np.log(visits)  # [interfaces]
        nodes = np.flatnonzero(visits)
        parts = products_below(network, np.array(network.roots)[nodes], self.names)
        self._products = (
            None if parts is None else Products(self.names, network, nodes, parts, self.prior)
        )

    @classmethod
    def of(cls, template: Template) -> "StateIndex":
        """Return the index of a template, by its visits."""
        return cls(template.schema, state_part(template.template), visits_of_states(template))

    @cached_property
    def _compiled(self) -> CompiledLikelihood:
        """The likelihood of states under every root, where these have too many products."""
        return compile_likelihood(self.network)

    @cached_property
    def node_values(self) -> list[dict[str, Value]]:
        """The values of the variables in each interface node, several as one string."""
        return values_in_nodes(self.network.nodes[:], self.network.roots)

    def belief(self, known: Mapping[str, Value]) -> Beliefs:
        """Return which nodes a state, or part of one, may be in; each node is there once."""
        if self._products is not None:
            return self._products.belief(known)
        columns = {n: Distinct([value], np.zeros(1, np.int64)) for n, value in known.items()}
        logs = self._compiled(columns, 1)[:, 0]
        return Beliefs.of_one(np.arange(len(self.prior)), logs + self.prior)

    def pairs(self, columns: Mapping[str, Column], rows: int) -> Pairs:
        """Return which nodes rows may be in, with log P(state | node).

        What a state lacks is marginalised.
        """
        if self._products is not None:
            return self._products.pairs(columns, rows)
        coded = {name: Distinct.of(columns[name]) for name in self.names}
        found = []
        for start, logs in self._compiled.chunks(coded, rows):
            row, node = np.nonzero((logs > -np.inf).T & (self.prior > -np.inf))
            found.append(Pairs(start + row, node, logs[node, row]))
        return Pairs.concatenated(found)

    def routes(self, table: Table) -> Routes:
        """Return the distinct states of a table, and what their beliefs are found by."""
        columns = {}
        for name in self.names:
            columns[name] = table.coded(name, self.schema.kinds.get(name))
        if self._products is not None:
            return self._products.routes(columns, table.rows)
        groups = joint_groups(columns.values(), table.rows)
        first = groups.members()
        pairs = self.pairs({n: c.take(first) for n, c in columns.items()}, len(first))
        starts, counts = pairs.starts(len(first)), np.bincount(pairs.row, minlength=len(first))

        def beliefs_of(part: Ints) -> Beliefs:
            here, _ = ranges(starts[part], starts[part + 1])
            node = pairs.node[here]
            return Beliefs.of_logs(counts[part], node, pairs.logs[here] + self.prior[node])

        node, _ = pairs.likeliest(self.prior, len(first))
        node = np.where(counts > 1, SEVERAL, node)
        return Routes(columns, groups.codes.astype(np.int64), first, node, counts, beliefs_of)
