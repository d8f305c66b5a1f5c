"""What every value of a decision is worth in many contexts: `action_values` on arrays.

Nothing after the decision is known, so what a branch of a max node is worth is the same in every
context. What a context changes is which max nodes it leads to, and how likely: likelihoods are
passed up to the root of what lies above these max nodes, then the probability of the root is passed
down to them. `rspmn.infer.actions` is the same thing node by node.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rspmn.circuit import (
    Distribution,
    FactoredLatents,
    Latent,
    Leaf,
    Max,
    Network,
    Sum,
    Utility,
)
from rspmn.data.columns import Column
from rspmn.infer.actions import ActionValue, judged, shown_share
from rspmn.infer.compiled.layers import CHUNK, COMBINE, KINDS, Layer
from rspmn.infer.criterion import LEAST_KNOWN
from rspmn.infer.evaluation import Evaluation, evaluate
from rspmn.infer.evidence import Known, open_variables
from rspmn.schema import Kind
from rspmn.types import Array, Bools, Ints
from rspmn.values import Mark, Value

#: The code of a value that is not given, and of one that the network does not list.
MISSING, UNLISTED = -1, -2
NO_NUMBERS = (str, Mark)
#: What a leaf that excludes a value passes up if no part of the network has the context.
EXCLUDED = -1e6


@dataclass(frozen=True, eq=False)
class Cases:
    """What is known before a decision, in several cases: a row each."""

    numbers: Array  # [variables, rows], NaN where it is missing
    codes: Ints  # [variables, rows], of listed values and of decisions


@dataclass(frozen=True, eq=False)
class Worths:
    """What each value of a decision is worth in each of several contexts."""

    decision: str
    values: tuple[Value, ...]
    utility: Array  # [rows, values], NaN where it is offered nowhere
    available: Array  # [rows, values], the probability of a part that offers it
    steps: Array  # [rows, values], logged steps that support it
    near: Array  # [rows, values], those of each part by how probable the part is
    variance: Array  # [rows, values], of the utility as an estimate
    log_likelihood: Array  # [rows], of the context
    possible: Bools  # [rows], whether the network has the context at all

    def answers(
        self, row: int, averaged_over: tuple[str, ...] = (), usual: float = 1.0
    ) -> list[ActionValue]:
        """Return one row as `action_values` does."""
        columns = (self.utility[row], self.available[row], self.steps[row], self.variance[row])
        found = [
            ActionValue(
                self.decision, value, utility, shown_share(available), steps,
                averaged_over=averaged_over, usual=usual,
                error=math.sqrt(variance) if variance > 0 else 0.0,
                known=shown_share(available),
                supported=shown_share(available) if usual > 0 else 0.0,
            )
            for value, utility, available, steps, variance in zip(
                self.values, *(column.tolist() for column in columns), strict=True
            )
        ]  # fmt: skip
        return judged(found, [answer.utility for answer in found])

    @cached_property
    def best(self) -> Ints:  # [rows]
        """The place of the best value: the highest utility of those of which most is known."""
        least = LEAST_KNOWN * self.available.max(axis=1, keepdims=True)
        offered = (self.available >= least) & (self.available > 0)
        return np.asarray(np.where(offered, self.utility, -np.inf).argmax(axis=1))


class CompiledDecision:
    """A network as it looks from one decision, without evidence after it.

    `network`: a network whose utilities are all below the decision. `decision`: the decision; those
    before it are given in every context.
    """

    def __init__(self, network: Network, decision: str) -> None:
        self.network, self.decision = network, decision
        self._cut = _nodes_above(network, decision)
        self._place = {index: place for place, index in enumerate(self._cut)}
        nodes = [network.nodes[index] for index in self._cut]
        self._values(evaluate(network, {}))
        leaves = [(p, n) for p, n in enumerate(nodes) if isinstance(n, Leaf)]
        self._name_values(leaves)
        self._sort_leaves(leaves)
        self._layers()

    @staticmethod
    def serves(network: Network, decision: str) -> bool:
        """Tell whether all that is earned in a network is earned below a decision."""
        above = (network.nodes[index] for index in _nodes_above(network, decision))
        return not any(isinstance(node, Utility | Latent | FactoredLatents) for node in above)

    # ---- how it is compiled --------------------------------------------------------

    def _values(self, evaluated: Sequence[Evaluation]) -> None:
        """Make the tables of what each branch of the decision's max nodes is worth."""
        nodes = self.network.nodes
        at = [
            i for i in self._cut if isinstance(n := nodes[i], Max) and n.decision == self.decision
        ]
        values: dict[Value, int] = {}
        for index in at:
            for value in nodes[index].values:  # type: ignore[union-attr]
                if not isinstance(value, Mark):
                    values.setdefault(value, len(values))
        self.values = tuple(values)
        self.ends = np.array([self._place[index] for index in at])  # [max nodes]
        shape = (len(at), len(values))
        self.worth, self.steps, self.variance = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.offered = np.zeros(shape)
        for row, index in enumerate(at):
            node = nodes[index]
            assert isinstance(node, Max)
            for value, child in zip(node.values, node.children, strict=True):
                found = evaluated[child]
                if value in values and found.utility > -math.inf:
                    cell = row, values[value]
                    self.worth[cell], self.offered[cell] = found.utility, 1.0
                    self.steps[cell], self.variance[cell] = found.logged_steps, found.variance

    def _name_values(self, leaves: list[tuple[int, Leaf]]) -> None:
        """Give numbers to variables above the decision, and to values that are listed or chosen."""
        nodes = [self.network.nodes[index] for index in self._cut]
        made = [(n.decision, n.values) for n in nodes if isinstance(n, Max)]
        self._made = {name for name, _ in made}
        listed = [(leaf.variable, leaf.distribution.support()) for _, leaf in leaves
                  if leaf.distribution.atoms() is not None]  # fmt: skip
        names = dict.fromkeys([*(leaf.variable for _, leaf in leaves), *(n for n, _ in made)])
        self.variables = [name for name in names if name != self.decision]
        self.codes: dict[str, dict[Value, int]] = {name: {} for name in self.variables}
        for name, several in (*listed, *made):
            for value in several if name != self.decision else ():
                self.codes[name].setdefault(value, len(self.codes[name]))

    def _sort_leaves(self, leaves: list[tuple[int, Leaf]]) -> None:
        """Sort the leaves into a table of those that list values and families of numbers."""
        row = {name: place for place, name in enumerate(self.variables)}
        by_family: dict[type[Distribution] | None, list[tuple[int, Leaf]]] = {}
        for place, leaf in leaves:
            is_listed = leaf.distribution.atoms() is not None
            family = None if is_listed else type(leaf.distribution)
            by_family.setdefault(family, []).append((place, leaf))
        tables = by_family.pop(None, [])
        self._families = [
            (
                np.array([place for place, _ in several]),
                np.array([row[leaf.variable] for _, leaf in several]),
                family.stacked([leaf.distribution for _, leaf in several]),
            )
            for family, several in by_family.items()
            if family is not None
        ]
        self._listed = np.array([place for place, _ in tables], dtype=np.int64)
        self._listed_row = np.array([row[leaf.variable] for _, leaf in tables], dtype=np.int64)
        self._table = self._table_of([leaf for _, leaf in tables])

    def _table_of(self, leaves: list[Leaf]) -> Array:  # [leaves, codes + 2]
        """Return the log-probabilities of listed values.

        The last columns are for UNLISTED and MISSING, as negative indices find them.
        """
        width = max([len(codes) for codes in self.codes.values()], default=0)
        table = np.full((len(leaves), width + 2), -np.inf)
        table[:, MISSING] = 0.0
        with np.errstate(divide="ignore"):
            for k, leaf in enumerate(leaves):
                atoms = leaf.distribution.atoms() or {}
                places = [self.codes[leaf.variable][value] for value in atoms]
                table[k, places] = np.log(list(atoms.values()))
                table[k, UNLISTED] = np.log(leaf.distribution.unlisted())
        return table

    def _layers(self) -> None:
        """Sort products, sums and earlier max nodes by height, the lowest first."""
        arrays, place = self.network.arrays, np.full(len(self.network), -1)
        place[self._cut] = np.arange(len(self._cut))
        inner = np.setdiff1d(self._cut, np.array(self._cut)[self.ends])
        inner = inner[np.diff(arrays.starts)[inner] > 0]
        made = np.where(arrays.kind == KINDS[Max], arrays.item, -1)
        keys = np.stack([arrays.heights(), arrays.kind, made])[:, inner]
        groups, which = np.unique(keys, axis=1, return_inverse=True)
        leads = np.zeros(len(self._cut), dtype=bool)  # to the decision
        leads[self.ends] = True
        self._levels = []
        for k, (_, kind, number) in enumerate(groups.T.tolist()):
            nodes = inner[which.ravel() == k]
            edges, first = arrays.edges_of(nodes)
            below = place[arrays.children[edges]]
            leads[place[nodes]] = np.logical_or.reduceat(leads[below], first)
            with np.errstate(divide="ignore"):
                weights = np.log(arrays.weights[edges])
            variable, code = -1, np.zeros(0, np.int64)
            if kind == KINDS[Max]:
                name = arrays.decisions[number]
                values = [arrays.values[choice] for choice in arrays.choice[edges].tolist()]
                variable = self.variables.index(name)
                code = np.array([self.codes[name][value] for value in values])
            above = place[arrays.parents[edges]]
            self._levels.append(
                _Level(kind, place[nodes], below, first, weights, above,
                       np.flatnonzero(leads[below]), variable, code)
            )  # fmt: skip

    # ---- questions -----------------------------------------------------------------

    def contexts(self, columns: Mapping[str, Column], rows: int) -> Cases:
        """Return columns as contexts; variables without a column are missing."""
        numbers = np.full((len(self.variables), rows), np.nan)
        codes = np.full((len(self.variables), rows), MISSING)
        for place, name in enumerate(self.variables):
            if name not in columns:
                continue
            column = columns[name]
            if column.kind in (Kind.CONTINUOUS, Kind.INTEGER, Kind.BOOLEAN):
                numbers[place] = column.numbers()
            if not self.codes[name]:
                continue
            if column.kind is Kind.CONTINUOUS:
                found = [self.codes[name].get(value, UNLISTED) for value in column.data.tolist()]
                codes[place] = np.where(column.missing, MISSING, found)
            else:
                known = [self.codes[name].get(value, UNLISTED) for value in column.domain]
                codes[place] = np.array([*known, MISSING])[column.data]
        return Cases(numbers, codes)

    def context(self, known: Known) -> Cases:
        """Return one context, given by values."""
        numbers, codes = [math.nan] * len(self.variables), [MISSING] * len(self.variables)
        for place, name in enumerate(self.variables):
            if name in known:
                value = known[name]
                if not isinstance(value, NO_NUMBERS):
                    numbers[place] = float(value)
                codes[place] = self.codes[name].get(value, UNLISTED)
        return Cases(np.array(numbers)[:, None], np.array(codes, dtype=np.int64)[:, None])

    def missing(self, known: Known) -> tuple[str, ...]:
        """Return the variables before the decision that are not known, as `averaged_over` does."""
        return open_variables(set(self.variables) - set(self._made), known)

    def __call__(self, contexts: Cases) -> Worths:
        """Return what each value of the decision is worth in each context."""
        rows = contexts.numbers.shape[1]
        step = max(1, CHUNK // max(1, len(self._cut)))
        parts = [
            self._evaluate(
                Cases(contexts.numbers[:, start : start + step],
                         contexts.codes[:, start : start + step])
            )
            for start in range(0, max(rows, 1), step)
        ]  # fmt: skip
        joined = (np.concatenate(several) for several in zip(*parts, strict=True))
        return Worths(self.decision, self.values, *joined)

    def _evaluate(self, contexts: Cases) -> tuple[Array, Array, Array, Array, Array, Array, Bools]:
        logs = self._log_likelihoods(contexts, -np.inf)
        possible = np.asarray(logs[-1] > -np.inf)
        if not possible.all():
            lost = ~possible
            some = Cases(contexts.numbers[:, lost], contexts.codes[:, lost])
            logs[:, lost] = self._log_likelihoods(some, EXCLUDED)
        all_flows, all_ways = self._flows(logs, contexts)
        flows, ways = all_flows[self.ends].T, all_ways[self.ends].T  # [rows, max nodes]
        available = flows @ self.offered
        with np.errstate(invalid="ignore", divide="ignore"):
            utility = flows @ (self.worth * self.offered) / available
            variance = flows**2 @ self.variance / available**2
        steps = ways @ self.steps
        return utility, available, steps, flows @ self.steps, variance, logs[-1], possible

    def _log_likelihoods(self, contexts: Cases, excluded: float) -> Array:  # [nodes, rows]
        """Return the log-likelihood of contexts under each node; the root is the last.

        `excluded` is that of a value that a leaf excludes.
        """
        logs = np.zeros((len(self._cut), contexts.numbers.shape[1]))
        if len(self._listed):
            codes = contexts.codes[self._listed_row]
            logs[self._listed] = np.take_along_axis(self._table, codes % self._table.shape[1], 1)
        for places, rows, log_probs in self._families:
            numbers = contexts.numbers[rows]
            gone = np.isnan(numbers)
            some = bool(gone.any())
            found = log_probs(np.where(gone, 0.0, numbers) if some else numbers)
            if some:
                odd = contexts.codes[rows] == UNLISTED  # text in place of a number
                found[gone] = np.where(odd, -np.inf, 0.0)[gone]
            logs[places] = found
        if excluded > -np.inf:
            np.maximum(logs, excluded, out=logs)
        for level in self._levels:
            below = logs[level.children]
            if level.kind == KINDS[Sum]:
                below += level.log_weights[:, None]
            elif level.kind == KINDS[Max]:
                below = np.where(level.fits(contexts), below, excluded)
            logs[level.nodes] = COMBINE[level.kind](below, level.starts)
        return logs

    def _flows(self, logs: Array, contexts: Cases) -> tuple[Array, Array]:  # [nodes, rows] each
        """Pass the probability of the root down, as `walk_down` does in `rspmn.infer.actions`.

        Return also in how many possible ways each node is reached.
        """
        flows, ways = np.zeros_like(logs), np.zeros_like(logs)
        flows[-1] = ways[-1] = 1.0
        for level in reversed(self._levels):
            on = level.onward
            parents, below = level.parents[on], level.children[on]
            share, way = flows[parents], ways[parents]
            if level.kind == KINDS[Sum]:
                here, logs_below = logs[parents], logs[below] + level.log_weights[on, None]
                share = share * np.exp(logs_below - np.where(np.isneginf(here), 0.0, here))
                way = way * (logs_below > -np.inf)
            elif level.kind == KINDS[Max]:
                fits = level.fits(contexts)[on]
                share, way = share * fits, way * fits
            np.add.at(flows, below, share)
            np.add.at(ways, below, way)
        return flows, ways


@dataclass(frozen=True, eq=False)
class _Level(Layer):
    """Nodes above the decision, of one height and kind, and of one earlier decision."""

    parents: Ints  # [edges]
    onward: Ints  # the edges on ways to the decision
    variable: int  # of max nodes, the decision
    codes: Ints  # of max nodes, [edges], the value of each branch

    def fits(self, contexts: Cases) -> Bools:  # [edges, rows]
        """Return which branches were taken."""
        return np.asarray(self.codes[:, None] == contexts.codes[self.variable])


def _nodes_above(network: Network, decision: str) -> list[int]:
    """Return the nodes that a root reaches without passing a max node of a decision."""
    reached = {network.root}
    for index in range(network.root, -1, -1):  # children come before parents
        node = network.nodes[index]
        if index in reached and not (isinstance(node, Max) and node.decision == decision):
            reached.update(node.children)
    return sorted(reached)
