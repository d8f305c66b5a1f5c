"""Drawing many episodes at once: all that run are at the same time step.

The plain form, one episode after the other, is `rspmn.infer.sample`. Here pairs (episode, node)
go down the template together: a product sends an episode on to all its children, a sum to one of
them, at a max node it waits for the decision.
"""

from collections.abc import Mapping

import numpy as np

from rspmn.circuit import Latent, Leaf, Max, Product, Sum, Utility
from rspmn.circuit.distributions import as_numbers
from rspmn.data.columns import Column, encode, missing_column
from rspmn.data.episodes import Episodes, Followed
from rspmn.data.keys import joint_groups
from rspmn.infer.compiled.layers import KINDS, flatten, ranges
from rspmn.infer.policy import Policy
from rspmn.model import RSPMN
from rspmn.schema import Kind
from rspmn.types import Array, Bools, Ints
from rspmn.values import UNKNOWN, Mark, Value


class Simulator:
    """Draws episodes of a model."""

    def __init__(self, model: RSPMN) -> None:
        self.model = model
        self.flat = flatten(model.template)
        nodes = model.template.nodes
        self.variables = [n for n in model.schema.variables if n != model.schema.utility]
        self.coding = _Coding(self.variables)
        self.values = self.coding.values
        self.numeric = {
            n.variable for n in nodes if isinstance(n, Leaf) and n.distribution.atoms() is None
        }
        self.variable = np.full(len(nodes), -1)  # of leaves and max nodes
        self.mean, self.spread = np.zeros((2, len(nodes)))
        self.interface = np.full(len(nodes), -1)
        self.stuck = np.zeros(len(nodes), dtype=bool)  # max nodes where nothing was ever tried
        self._read_nodes()
        self.leaf_codes, self.leaf_ends = self._leaves()
        self.edge_codes = self._branches()
        self.edge_ends = _raised(self.flat.weights, self.flat.starts)

    def _read_nodes(self) -> None:
        """Write down what each node is about."""
        place = {name: k for k, name in enumerate(self.variables)}
        for index, node in enumerate(self.model.template.nodes):
            match node:
                case Leaf():
                    self.variable[index] = place[node.variable]
                case Max():
                    self.variable[index] = place[node.decision]
                    self.stuck[index] = node.values == (UNKNOWN,)
                case Utility():
                    self.mean[index], self.spread[index] = node.mean, node.variance**0.5
                case Latent():
                    self.interface[index] = node.interface
                case _:
                    pass

    def _leaves(self) -> tuple[Ints, Array]:
        """Return the codes of all leaves' values, and where each value's share of them ends."""
        masses: list[float] = []
        codes: list[int] = []
        starts = [0]
        for node in self.model.template.nodes:
            atoms = node.distribution.atoms() if isinstance(node, Leaf) else None
            if isinstance(node, Leaf) and atoms is not None:
                masses += atoms.values()
                codes += [self.coding.code(node.variable, value) for value in atoms]
            starts.append(len(masses))
        return np.array(codes, dtype=np.int64), _raised(np.array(masses), np.array(starts))

    def _branches(self) -> Ints:  # [edges]
        """Return the code of the value that each branch of a max node stands for, else -1."""
        codes = np.full(len(self.flat.children), -1)
        for index, node in enumerate(self.model.template.nodes):
            if isinstance(node, Max):
                start = int(self.flat.starts[index])
                made = [self.coding.code(node.decision, value) for value in node.values]
                codes[start : start + len(made)] = made
        return codes

    def run(
        self, episodes: int, horizon: int, rng: np.random.Generator, policy: Policy | None = None
    ) -> Episodes:
        """Draw episodes from the start; decisions are made by the policy, or uniformly."""
        steps = _Steps(self, episodes)
        which = np.arange(episodes)
        weights = np.array(self.model.starts)
        at = rng.choice(len(weights), episodes, p=weights / weights.sum())
        for t in range(horizon):
            at, which = self._stop(steps, at, which)
            if not len(which):
                break
            draw = _Draw(self, at, rng)
            goes_on = ~draw.run(policy, t)
            steps.add(which, draw, goes_on)
            at, which = draw.interface[goes_on], which[goes_on]
        self._stop(steps, at, which)
        return steps.episodes()

    def _stop(self, steps: "_Steps", at: Ints, which: Ints) -> tuple[Ints, Ints]:
        """Take out the episodes that ended, or of which it is not known how they go on."""
        if self.model.end is not None:
            steps.endings[which[at == self.model.end]] = Followed.END
        out = np.isin(at, [i for i in (self.model.end, self.model.unknown) if i is not None])
        return at[~out], which[~out]


class _Coding:
    """Codes for the values of each variable, in the order in which they are met."""

    def __init__(self, names: list[str]) -> None:
        self.values: dict[str, list[Value]] = {name: [] for name in names}
        self._codes: dict[tuple[str, type, Value], int] = {}

    def code(self, name: str, value: Value) -> int:
        """Return the code of a value; True, 1 and 1.0 are not the same."""
        known = self._codes.setdefault((name, type(value), value), len(self.values[name]))
        if known == len(self.values[name]):
            self.values[name].append(value)
        return known


class _Draw:
    """One step of several episodes."""

    def __init__(self, simulator: Simulator, at: Ints, rng: np.random.Generator) -> None:
        self.s, self.rng = simulator, rng
        size = len(at)
        self.codes = {name: np.full(size, -1) for name in simulator.variables}
        self.numbers = {name: np.full(size, np.nan) for name in simulator.numeric}
        self.earned = np.zeros(size)
        self.interface = np.full(size, -1)
        self.row = np.arange(size)
        self.node = simulator.flat.roots[at]
        self.made: dict[str, Ints] = {}

    def run(self, policy: Policy | None, t: int) -> Bools:
        """Draw everything; return the episodes in which no decision is known."""
        kind = self.s.flat.kind
        self._fall()
        stuck = np.zeros(len(self.interface), dtype=bool)
        for name in self.s.model.schema.decisions:
            place = self.s.variables.index(name)
            mine = (kind[self.node] == KINDS[Max]) & (self.s.variable[self.node] == place)
            nothing = mine & self.s.stuck[self.node]
            stuck[self.row[nothing]] = True
            row, node = self.row[mine & ~nothing], self.node[mine & ~nothing]
            edge = self._decide(name, row, node, policy, t)
            self.codes[name][row] = self.s.edge_codes[edge]
            self.row = np.concatenate([self.row[~mine], row])
            self.node = np.concatenate([self.node[~mine], self.s.flat.children[edge]])
            self._fall()
        return stuck

    def _fall(self) -> None:
        """Go down until only max nodes are left."""
        flat, kinds = self.s.flat, KINDS
        waiting: list[tuple[Ints, Ints]] = [(self.row[:0], self.node[:0])]
        row, node = self.row, self.node
        while len(row):
            kind = flat.kind[node]
            waits = kind == kinds[Max]
            waiting.append((row[waits], node[waits]))
            self._leaves(row[kind == kinds[Leaf]], node[kind == kinds[Leaf]])
            paid = kind == kinds[Utility]
            noise = self.rng.standard_normal(int(paid.sum()))
            self.earned[row[paid]] = self.s.mean[node[paid]] + self.s.spread[node[paid]] * noise
            led = kind == kinds[Latent]
            self.interface[row[led]] = self.s.interface[node[led]]
            chooses, spreads = kind == kinds[Sum], kind == kinds[Product]
            drawn = node[chooses] + self.rng.random(int(chooses.sum()))
            chosen = np.searchsorted(self.s.edge_ends, drawn, side="right")
            edges, first = ranges(flat.starts[node[spreads]], flat.starts[node[spreads] + 1])
            row, node = (
                np.concatenate([row[chooses], np.repeat(row[spreads], np.diff(first))]),
                np.concatenate([flat.children[chosen], flat.children[edges]]),
            )
        self.row = np.concatenate([rows for rows, _ in waiting])
        self.node = np.concatenate([nodes for _, nodes in waiting])

    def _leaves(self, row: Ints, node: Ints) -> None:
        variable = self.s.variable[node]
        for place in np.unique(variable).tolist():
            name = self.s.variables[place]
            rows, leaves = row[variable == place], node[variable == place]
            drawn = leaves + self.rng.random(len(leaves))
            found = np.searchsorted(self.s.leaf_ends, drawn, side="right")
            if name not in self.s.numeric:
                self.codes[name][rows] = self.s.leaf_codes[found]
                continue
            for leaf in np.unique(leaves).tolist():
                here = rows[leaves == leaf]
                distribution = self.s.model.template.nodes[leaf].distribution
                self.numbers[name][here] = as_numbers(distribution.samples(self.rng, len(here)))

    def _decide(self, name: str, row: Ints, node: Ints, policy: Policy | None, t: int) -> Ints:
        """Return the edge that each decision leads down."""
        flat = self.s.flat
        first, count = flat.starts[node], flat.starts[node + 1] - flat.starts[node]
        if policy is None:
            return first + (self.rng.random(len(node)) * count).astype(np.int64)
        if name not in self.made:
            self._ask(name, row, policy, t)
        edges, starts = ranges(first, first + count)
        fits = self.s.edge_codes[edges] == np.repeat(self.made[name][row], count)
        found = np.maximum.reduceat(np.where(fits, edges, -1), starts[:-1]) if len(row) else row
        lost = found < 0  # not offered here, though the state does not show it
        found[lost] = first[lost]
        return found

    def _ask(self, name: str, row: Ints, policy: Policy, t: int) -> None:
        """Let the policy decide, once for each distinct state."""
        known = self.s.model.schema.known_before(name)
        columns = {n: self._column(n, row) for n in known}
        groups = joint_groups(columns.values(), len(row))
        members = groups.members()
        decoded = {n: column.take(members).decode() for n, column in columns.items()}
        answers = []
        for k in range(groups.size):
            state = {n: decoded[n][k] for n in known}
            made = policy.act({n: v for n, v in state.items() if not isinstance(v, Mark)}, t)
            answers.append(made if isinstance(made, Mapping) else {name: made})
        for decision in answers[0] if answers else ():
            codes = {v: c for c, v in enumerate(self.s.values[decision])}
            table = np.array([codes.get(answer[decision], -2) for answer in answers])
            made_here = np.full(len(self.interface), -2)
            made_here[row] = table[groups.codes]
            self.made[decision] = made_here

    def _column(self, name: str, row: Ints) -> Column:
        if name in self.s.numeric:
            return Column(Kind.CONTINUOUS, self.numbers[name][row])
        values = tuple(self.s.values[name])
        return Column(Kind.CATEGORICAL, self.codes[name][row].astype(np.int32), values)


class _Steps:
    """All steps drawn so far."""

    def __init__(self, simulator: Simulator, episodes: int) -> None:
        self.s = simulator
        self.which: list[Ints] = []
        self.drawn: list[tuple[_Draw, Bools]] = []
        self.endings = np.full(episodes, Followed.UNKNOWN, dtype=np.int8)
        self.finals: list[tuple[Ints, _Draw, Ints]] = []

    def add(self, which: Ints, draw: _Draw, goes_on: Bools) -> None:
        """Keep a step; where no decision is known it is the final state of its episode."""
        self.which.append(which[goes_on])
        self.drawn.append((draw, goes_on))
        if not goes_on.all():
            stuck = np.flatnonzero(~goes_on)
            self.endings[which[stuck]] = Followed.STATE
            self.finals.append((which[stuck], draw, stuck))

    def episodes(self) -> Episodes:
        """Put the steps together."""
        schema = self.s.model.schema
        which = np.concatenate(self.which)
        order = np.argsort(which, kind="stable")
        lengths = np.bincount(which, minlength=len(self.endings))
        columns, finals = {}, {}
        for name in self.s.variables:
            columns[name], finals[name] = self._columns(name, order)
        earned = np.concatenate([draw.earned[keep] for draw, keep in self.drawn])
        columns[schema.utility] = Column(Kind.CONTINUOUS, earned[order])
        return Episodes(
            schema.with_kinds({name: column.kind for name, column in columns.items()}),
            {name: columns[name] for name in schema.variables},
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            self.endings,
            {name: finals[name] for name in schema.information_sets[0]},
            np.arange(len(self.endings)),
        )

    def _columns(self, name: str, order: Ints) -> tuple[Column, Column]:
        """Return a variable's column in the steps, and in the final states."""
        kind = self.s.model.schema.kinds.get(name)
        states = self.finals if name in self.s.model.schema.information_sets[0] else []
        where = np.concatenate([[], *(which for which, _, _ in states)]).astype(np.int64)
        if name in self.s.numeric:
            parts = [draw.numbers[name][keep] for draw, keep in self.drawn]
            last = [draw.numbers[name][rows] for _, draw, rows in states]
            numbers = np.concatenate([np.concatenate(parts)[order], *last])
            whole = encode(numbers, np.zeros(len(numbers), bool), kind, name)
        else:
            coded = [draw.codes[name][keep] for draw, keep in self.drawn]
            last = [draw.codes[name][rows] for _, draw, rows in states]
            codes = np.concatenate([np.concatenate(coded)[order], *last]).astype(np.int64)
            marked = [isinstance(value, Mark) for value in self.s.values[name]]
            codes[np.array([*marked, True])[codes]] = -1  # what is UNKNOWN is missing
            seen = np.unique(codes[codes >= 0])
            values = np.empty(len(seen), dtype=object)
            values[:] = [self.s.values[name][c] for c in seen.tolist()]
            named = encode(values, np.zeros(len(seen), bool), kind, name)
            whole = named.take(np.where(codes >= 0, np.searchsorted(seen, codes), -1))
        steps = whole.take(np.arange(len(order)))
        finals = missing_column(len(self.endings), whole)
        finals.data[where] = whole.data[len(order) :]
        return steps, finals


def _raised(masses: Array, starts: Ints) -> Array:
    """Return every group's distribution function, raised by the group: one sorted array."""
    sums = np.concatenate([[0.0], np.cumsum(masses)])
    group = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    inside = sums[1:] - sums[starts[group]]
    total = sums[starts[group + 1]] - sums[starts[group]]
    return np.asarray(group + inside / total)
