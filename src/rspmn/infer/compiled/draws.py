"""Sampling in arrays: many rows at once, each as `rspmn.infer.sample.Draw` draws one.

Pairs (row, node) go down the network together. A product passes a row on to all its children, a
sum to one of them; at a max node it waits for the decision.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rspmn.circuit import FactoredLatents, Latent, Leaf, Max, Network, Product, Sum, Utility
from rspmn.circuit.distributions import as_numbers
from rspmn.data.cells import Cells
from rspmn.data.columns import Column, encode
from rspmn.data.distinct import find_sorted
from rspmn.data.keys import joint_groups
from rspmn.errors import EvidenceError
from rspmn.infer.branches import Context
from rspmn.infer.compiled.factor_rows import rows_by_factors
from rspmn.infer.compiled.groups import Groups
from rspmn.infer.compiled.layers import KINDS, ranges
from rspmn.infer.compiled.product_samples import ProductSampler
from rspmn.infer.policy import Policy
from rspmn.schema import Kind, Schema
from rspmn.types import Bools, Ints, objects
from rspmn.values import UNKNOWN, Mark, Value

#: What makes decisions: a policy; current practice, by the shares in which the log made them; or
#: nothing: all are equally probable.
Decides = Policy | Literal["practice"] | None
#: The least and the greatest number of 64 bits that floats hold.
INT64 = -(2.0**63), np.nextafter(2.0**63, 0.0)


class Sampler:
    """A network as arrays to draw from."""

    def __init__(self, network: Network, schema: Schema) -> None:
        self.network, self.schema, self.arrays = network, schema, network.arrays
        self.variables = [n for n in schema.variables if n != schema.utility]
        self.coding = _Coding(self.variables)
        leaves = [node for node in network.nodes if isinstance(node, Leaf)]
        #: Variables that are drawn as numbers, not as codes of values; and whether as integers.
        self.numeric = {n.variable: True for n in leaves if n.distribution.atoms() is None}
        for leaf in leaves:
            if leaf.variable in self.numeric:
                whole = all(isinstance(v, int | Mark) for v in leaf.distribution.support())
                self.numeric[leaf.variable] &= whole
        size = len(network)
        self.variable = np.full(size, -1)  # [nodes], of leaves and max nodes
        self.mean, self.deviation = np.zeros((2, size))  # [nodes], of utilities
        self.interface = np.full(size, -1)  # [nodes], of latents
        self.untried = np.zeros(size, dtype=bool)  # [nodes], max nodes without a known decision
        self._read_nodes()
        self.leaf_codes, self.atoms = self._leaf_values()
        self.branch_codes = self._branch_values()
        self.edges = Groups(self.arrays.weights, self.arrays.starts)

    def _read_nodes(self) -> None:
        place = {name: k for k, name in enumerate(self.variables)}
        for index, node in enumerate(self.network.nodes):
            match node:
                case Leaf():
                    self.variable[index] = place[node.variable]
                case Max():
                    self.variable[index] = place[node.decision]
                    self.untried[index] = node.values == (UNKNOWN,)
                case Utility():
                    self.mean[index], self.deviation[index] = node.mean, node.variance**0.5
                case Latent():
                    self.interface[index] = node.interface
                case _:
                    pass

    def _leaf_values(self) -> tuple[Ints, Groups]:
        """Return the codes of the values of all leaves with atoms, and their probabilities."""
        masses: list[float] = []
        codes: list[int] = []
        starts = [0]
        for node in self.network.nodes:
            atoms = node.distribution.atoms() if isinstance(node, Leaf) else None
            if isinstance(node, Leaf) and atoms is not None:
                masses += atoms.values()
                codes += [self.coding.code(node.variable, value) for value in atoms]
            starts.append(len(masses))
        return np.array(codes, dtype=np.int64), Groups(np.array(masses), np.array(starts))

    def _branch_values(self) -> Ints:  # [edges]
        """Return the code of the decision value of each edge below a max node, -1 elsewhere."""
        codes = np.full(len(self.arrays.children), -1)
        for index in self.arrays.of_kind(Max).tolist():
            node = self.network.nodes[index]
            assert isinstance(node, Max)
            made = [self.coding.code(node.decision, value) for value in node.values]
            codes[self.arrays.starts[index] : self.arrays.starts[index + 1]] = made
        return codes

    @cached_property
    def practised(self) -> Groups:
        """The branches of each max node by the logged steps below them; alike if there are none."""
        steps = np.array(Context(self.network).steps)[self.arrays.children]
        masses = np.ones(len(steps))
        for index in self.arrays.of_kind(Max).tolist():
            here = slice(self.arrays.starts[index], self.arrays.starts[index + 1])
            if 0 < steps[here].sum() < np.inf:
                masses[here] = steps[here]
        return Groups(masses, self.arrays.starts)

    @cached_property
    def products(self) -> list[tuple[Ints, ProductSampler]]:
        """Nodes that are factored latents, sorted, and what draws from each, by their factors."""
        found = rows_by_factors(self.network, self.arrays.of_kind(FactoredLatents))
        return [(nodes, ProductSampler(factors, rows)) for factors, nodes, rows in found]

    def empty(self, name: str, size: int) -> NDArray[Any]:
        """Return room for draws of a variable."""
        return np.full(size, np.nan) if name in self.numeric else np.full(size, -1)

    def decoded(self, name: str, drawn: NDArray[Any]) -> list[Value]:
        """Return draws of a variable as values, NaN where there is a mark instead of a number."""
        if name in self.numeric:
            whole = self.numeric[name]
            return [int(x) if whole and not math.isnan(x) else x for x in drawn.tolist()]
        values = self.coding.values[name]
        return [values[code] for code in drawn.tolist()]

    def raw_column(self, name: str, drawn: NDArray[Any]) -> Column:
        """Return draws as a column in the sampler's own coding, marks included."""
        if name in self.numeric:
            return Column(Kind.CONTINUOUS, drawn)
        return Column(Kind.CATEGORICAL, drawn, tuple(self.coding.values[name]))

    def column(self, name: str, drawn: NDArray[Any]) -> Column:
        """Return draws of a variable as a column; marks (END, UNKNOWN) are missing."""
        kind = self.schema.kinds.get(name)
        if name in self.numeric:
            missing = np.isnan(drawn)
            present = drawn[~missing]
            whole = self.numeric[name] and kind is not Kind.CONTINUOUS
            present = np.clip(present, *INT64).astype(np.int64) if whole else present
            return encode(Cells(present, missing), kind, name)
        values = self.coding.values[name]
        is_mark = np.array([*(isinstance(value, Mark) for value in values), True])
        codes = np.where(is_mark[drawn], -1, drawn)
        seen = np.unique(codes[codes >= 0])
        present = objects([values[code] for code in seen.tolist()])
        named = encode(Cells.full(present), kind, name)
        return named.take(np.where(codes >= 0, np.searchsorted(seen, codes), -1))


class _Coding:
    """Codes of the values of each variable, in the order in which they are met."""

    def __init__(self, names: list[str]) -> None:
        self.values: dict[str, list[Value]] = {name: [] for name in names}
        self._codes: dict[tuple[str, type, Value], int] = {}

    def code(self, name: str, value: Value) -> int:
        """Return the code of a value; True, 1 and 1.0 are different values."""
        known = self._codes.setdefault((name, type(value), value), len(self.values[name]))
        if known == len(self.values[name]):
            self.values[name].append(value)
        return known


class ManyDraws:
    """Many draws in progress, each as `rspmn.infer.sample.Draw` is one."""

    def __init__(self, sampler: Sampler, at: Ints, rng: np.random.Generator) -> None:
        """Start a draw from root `at[k]` for each row k."""
        self.s, self.rng, self.size = sampler, rng, len(at)
        self.drawn = {name: sampler.empty(name, self.size) for name in sampler.variables}
        self.utility = np.zeros(self.size)
        self.interface = np.full(self.size, -1)  # of the next step
        # pairs that wait
        self.row, self.node = np.arange(self.size), np.array(sampler.network.roots)[at]
        self._decided: dict[str, Ints] = {}  # by decision, codes [rows]

    def finish(
        self, policy: Decides = None, t: int = 0, made: Collection[str] = ()
    ) -> Bools:  # [rows]
        """Make all decisions; return the rows in which they were known.

        The policy is not asked about decisions in `made`.
        """
        arrays, known = self.s.arrays, np.ones(self.size, dtype=bool)
        self._descend()
        for name in self.s.schema.decisions:
            waits = self.s.variable[self.node] == self.s.variables.index(name)
            untried = waits & self.s.untried[self.node]
            row, node = self.row[waits & ~untried], self.node[waits & ~untried]
            edge = self._choose(name, row, node, None if name in made else policy, t)
            known[self.row[untried]] = False
            known[row[edge < 0]] = False
            row, edge = row[edge >= 0], edge[edge >= 0]
            self.drawn[name][row] = self.s.branch_codes[edge]
            self.row = np.concatenate([self.row[~waits], row])
            self.node = np.concatenate([self.node[~waits], arrays.children[edge]])
            self._descend()
        return known

    def _descend(self) -> None:
        """Draw from the pairs on, until all wait at max nodes."""
        arrays = self.s.arrays
        waiting: list[tuple[Ints, Ints]] = [(self.row[:0], self.node[:0])]
        row, node = self.row, self.node
        while len(row):
            kind = arrays.kind[node]
            is_max, is_leaf = kind == KINDS[Max], kind == KINDS[Leaf]
            waiting.append((row[is_max], node[is_max]))
            self._draw_values(row[is_leaf], node[is_leaf])
            pays = kind == KINDS[Utility]
            noise = self.s.deviation[node[pays]] * self.rng.standard_normal(int(pays.sum()))
            self.utility[row[pays]] = self.s.mean[node[pays]] + noise
            leads, spread = kind == KINDS[Latent], kind == KINDS[FactoredLatents]
            self.interface[row[leads]] = self.s.interface[node[leads]]
            self._draw_interfaces(row[spread], node[spread])
            is_sum, is_product = kind == KINDS[Sum], kind == KINDS[Product]
            chosen = self.s.edges.draw(node[is_sum], self.rng)
            parts = node[is_product]
            edges, first = ranges(arrays.starts[parts], arrays.starts[parts + 1])
            row = np.concatenate([row[is_sum], np.repeat(row[is_product], np.diff(first))])
            node = arrays.children[np.concatenate([chosen, edges])]
        self.row = np.concatenate([rows for rows, _ in waiting])
        self.node = np.concatenate([nodes for _, nodes in waiting])

    def _draw_interfaces(self, row: Ints, node: Ints) -> None:
        """Draw the next interface node of rows at factored latents."""
        for nodes, products in self.s.products:
            place = find_sorted(nodes, node)
            here = place >= 0
            self.interface[row[here]] = products.draw(place[here], self.rng)

    def _draw_values(self, row: Ints, node: Ints) -> None:
        variable = self.s.variable[node]
        for place in np.unique(variable).tolist():
            name = self.s.variables[place]
            rows, leaves = row[variable == place], node[variable == place]
            if name not in self.s.numeric:
                self.drawn[name][rows] = self.s.leaf_codes[self.s.atoms.draw(leaves, self.rng)]
                continue
            for leaf in np.unique(leaves).tolist():
                here = rows[leaves == leaf]
                distribution = self.s.network.nodes[leaf].distribution
                self.drawn[name][here] = as_numbers(distribution.samples(self.rng, len(here)))

    def _choose(self, name: str, row: Ints, node: Ints, policy: Decides, t: int) -> Ints:
        """Return the edge that each decision selects, -1 if the policy's is not offered."""
        if not len(row):
            return row
        first, stop = self.s.arrays.starts[node], self.s.arrays.starts[node + 1]
        if policy is None:
            return first + (self.rng.random(len(node)) * (stop - first)).astype(np.int64)
        if isinstance(policy, str):
            if policy != "practice":
                raise EvidenceError(f"policy: expected a policy or 'practice', found {policy!r}")
            return self.s.practised.draw(node, self.rng)
        if name not in self._decided:
            self._ask(name, row, policy, t)
        edges, starts = ranges(first, stop)
        fits = self.s.branch_codes[edges] == np.repeat(self._decided[name][row], stop - first)
        return np.asarray(np.maximum.reduceat(np.where(fits, edges, -1), starts[:-1]))

    def _ask(self, name: str, row: Ints, policy: Policy, t: int) -> None:
        """Ask the policy once for each distinct state."""
        names = self.s.schema.known_before(name)
        columns = [self.s.raw_column(n, self.drawn[n][row]) for n in names]
        groups = joint_groups(columns, len(row))
        distinct = row[groups.members()]
        states = {n: self._seen(n, distinct) for n in names}
        for decision, made in self._answers(name, states, groups.size, policy, t).items():
            codes = {value: code for code, value in enumerate(self.s.coding.values[decision])}
            table = np.array([codes.get(value, -2) for value in made], dtype=np.int64)
            self._decided[decision] = np.full(self.size, -2)
            self._decided[decision][row] = table[groups.codes]

    def _seen(self, name: str, rows: Ints) -> list[Value | None]:
        """Return what a policy sees of a variable: marks are missing values."""
        drawn = self.s.decoded(name, self.drawn[name][rows])
        return [None if isinstance(value, Mark) else value for value in drawn]

    def _answers(
        self, name: str, states: dict[str, list[Value | None]], size: int, policy: Policy, t: int
    ) -> Mapping[str, Sequence[Value]]:
        """Return what a policy decides in some states, all at once before the first decision."""
        if name == self.s.schema.decisions[0] and states and size:
            made = policy.act_many(states, t)
            found = made if isinstance(made, dict) else {name: made}
            return {decision: found[decision].tolist() for decision in policy.planned.together}
        answers = []
        for k in range(size):
            answer = policy.act({n: v[k] for n, v in states.items() if v[k] is not None}, t)
            answers.append(answer if isinstance(answer, dict) else {name: answer})
        return {decision: [each[decision] for each in answers] for decision in (answers or [{}])[0]}
