"""The posterior of the interface nodes that steps lead from and to, where these are not certain.

    P(i, j | step) ∝ P(x | i) · P(x' | j) · n(i, d, j) · P(u | i, d) · …

P(x | i) is the circuit's, with missing values marginalised. n counts the steps from i to j by the
decisions d. It begins with the steps whose nodes are certain, and is re-estimated with the shares a
few times: expectation maximisation. P(u | i, d) backs off to P(u | d) with the weight of one step.
So does what else is observed after a decision, and whether the step is the first of an episode.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rspmn.data.distinct import find_sorted
from rspmn.data.episodes import Followed
from rspmn.data.keys import group_weights, joint_groups
from rspmn.data.windows import Windows
from rspmn.infer.compiled.assign import NOWHERE, SEVERAL, Located, possible_roots
from rspmn.infer.compiled.layers import ranges
from rspmn.model import RSPMN
from rspmn.schema import Kind
from rspmn.types import Array, Bools, Ints


class Candidates:
    """The interface nodes that each state may be in; the last state is END."""

    def __init__(self, model: RSPMN, located: Located) -> None:
        states, node = located.states, located.node
        one = np.flatnonzero(node >= 0)
        open_ = np.flatnonzero(node == SEVERAL)
        found = possible_roots(model, states, open_)
        ends = [] if model.end is None else [model.end]
        state = np.concatenate([one, open_[found.row], np.full(len(ends), states.count)])
        order = np.argsort(state, kind="stable")
        self.node = np.concatenate([node[one], found.node, ends]).astype(np.int64)[order]
        self.log = np.concatenate([np.zeros(len(one)), found.logs, np.zeros(len(ends))])[order]
        self.starts = np.searchsorted(state[order], np.arange(states.count + 2))
        self.size = model.num_interfaces
        key = state[order] * self.size + self.node
        self._order = np.argsort(key)
        self._keys = key[self._order]

    def count(self, state: Ints) -> Ints:
        """Return how many nodes each state may be in; 0 for state -1."""
        return np.where(state < 0, 0, self.starts[state + 1] - self.starts[state])

    def of(self, state: Ints) -> tuple[Ints, Ints]:
        """Return the places of the candidates of some states, and which state each is for."""
        place, first = ranges(self.starts[state], self.starts[state + 1])
        return place, np.repeat(np.arange(len(state)), np.diff(first))

    def find(self, state: Ints, node: Ints) -> Ints:
        """Return the place of a candidate, -1 if a state cannot be in the node."""
        at = find_sorted(self._keys, state * self.size + node)
        return np.where(at >= 0, self._order[at], -1)


#: How often shares are estimated anew.
ROUNDS = 10
#: More distinct utilities than MOST_VALUES are compared in BINS bins.
MOST_VALUES, BINS = 64, 16
NUMBERS = Kind.INTEGER, Kind.CONTINUOUS
#: At most about this many pairs of nodes are looked at per chunk of windows.
CHUNK = 2_000_000


@dataclass(frozen=True, eq=False)
class NodePairs:
    """Nodes that windows may lead from and to."""

    window: Ints  # [pairs]
    here: Ints  # [pairs]
    after: Ints  # [pairs], NOWHERE where nothing known followed, SEVERAL where it stays open
    log: Array  # [pairs], of P(x | here) · P(x' | after)

    def where(self, kept: Bools | Ints) -> "NodePairs":
        """Return some of the pairs."""
        return NodePairs(self.window[kept], self.here[kept], self.after[kept], self.log[kept])

    @staticmethod
    def joined(parts: "list[NodePairs]") -> "NodePairs":
        """Return the pairs of several lists as one."""
        return NodePairs(
            np.concatenate([part.window for part in parts]),
            np.concatenate([part.here for part in parts]),
            np.concatenate([part.after for part in parts]),
            np.concatenate([part.log for part in parts]),
        )


class PairPosterior:
    """The posterior of the nodes of all steps that are not certain."""

    def __init__(
        self, model: RSPMN, located: Located, windows: Windows, here: Ints, after: Ints, sure: Bools
    ) -> None:
        self.candidates = Candidates(model, located)
        self.size, self.counts = model.num_interfaces, windows.counts.astype(np.float64)
        self.state, self.next = located.states.of_steps, located.states.of_successors.copy()
        self.next[windows.followed == Followed.END] = located.states.count
        made = [windows.columns[name] for name in windows.schema.decisions]
        self.made = joint_groups(made, len(windows)).codes.astype(np.int64)
        began = (windows.starts > 0).astype(np.int64), 2
        self.seen = [began, *(_categories(windows, name) for name in _seen_after(windows))]
        open_ = (here == SEVERAL) | ((after == SEVERAL) & (here >= 0))
        self.open, self.sure = np.flatnonzero(open_), np.flatnonzero(sure)
        # What is certain: steps from node to node by the decisions, and from nodes at all.
        here, after = here[self.sure], after[self.sure]
        self.group = self.group_of(self.sure, here)
        self.edges, edge = np.unique(self.group * self.size + after, return_inverse=True)
        self.certain = group_weights(edge, self.counts[self.sure], len(self.edges))
        self.arrivals = group_weights(after, self.counts[self.sure], self.size)

    def group_of(self, window: Ints, here: Ints) -> Ints:
        """Return a number for a node and the decisions of a window."""
        return self.made[window] * self.size + here

    def shares(self) -> tuple[NodePairs, Array]:
        """Return pairs of nodes of all steps that are not certain, and their shares."""
        pairs = NodePairs.joined([*self._logged(), self._cut()])
        rest = self._unseen(np.setdiff1d(self.open, pairs.window))
        evidence = _Evidence(self, pairs, rest)
        share = np.zeros(len(pairs.window))
        for _ in range(ROUNDS):
            share = evidence.shares(share)
        return NodePairs.joined([pairs, rest]), np.append(share, evidence.of_rest(share))

    def _chunks(self, windows: Ints) -> Iterator[Ints]:
        """Divide windows into chunks with about CHUNK candidates."""
        each = len(self.edges) / max(1, self.size) / (1 + int(self.made.max(initial=0)))
        work = np.cumsum(self.candidates.count(self.state[windows]) * max(1.0, each))
        yield from np.split(windows, np.flatnonzero(np.diff(work // CHUNK)) + 1)

    def _logged(self) -> Iterator[NodePairs]:
        """Return the pairs between which certain steps were logged with the same decisions."""
        nodes, of_edge = self.candidates, self.edges // self.size
        for windows in self._chunks(self.open[self.candidates.count(self.next[self.open]) > 0]):
            place, which = nodes.of(self.state[windows])
            window, here = windows[which], nodes.node[place]
            group = self.group_of(window, here)
            first = np.searchsorted(of_edge, group), np.searchsorted(of_edge, group, "right")
            edge, starts = ranges(*first)
            again = np.repeat(np.arange(len(group)), np.diff(starts))
            after = self.edges[edge] % self.size
            then = nodes.find(self.next[window[again]], after)
            kept = then >= 0
            again = again[kept]
            log = nodes.log[place[again]] + nodes.log[then[kept]]
            yield NodePairs(window[again], here[again], after[kept], log)

    def _cut(self) -> NodePairs:
        """Return the nodes of steps of which nothing is known that followed."""
        windows = self.open[self.candidates.count(self.next[self.open]) == 0]
        return self._offered(windows, NOWHERE)

    def _offered(self, windows: Ints, after: int) -> NodePairs:
        """Return the nodes in which the decisions of windows were made in certain steps."""
        place, which = self.candidates.of(self.state[windows])
        window, here = windows[which], self.candidates.node[place]
        kept = np.isin(self.group_of(window, here), self.group)
        log = self.candidates.log[place[kept]]
        return NodePairs(window[kept], here[kept], np.full(len(log), after), log)

    def _unseen(self, windows: Ints) -> NodePairs:
        """Return pairs of steps that no certain step was like.

        If one end is certain, they lead there from all nodes that offer their decisions, or from
        there to all nodes that agree. If neither is, what followed stays open.
        """
        nodes = self.candidates
        found = self._offered(windows, SEVERAL)
        sure = nodes.count(self.next[found.window]) == 1
        found.after[sure] = nodes.node[nodes.starts[self.next[found.window[sure]]]]
        onward = (nodes.count(self.state[found.window]) == 1) & ~sure
        onward &= nodes.count(self.next[found.window]) > 0
        place, which = nodes.of(self.next[found.window[onward]])
        some = found.where(onward)
        then = NodePairs(some.window[which], some.here[which], nodes.node[place], nodes.log[place])
        with np.errstate(divide="ignore"):
            then.log[:] += np.log(self.arrivals[then.after])
        return NodePairs.joined([found.where(~onward), then])


class _Evidence:
    """What else is known of steps: the joint counts of nodes, decisions and what was seen."""

    def __init__(self, posterior: PairPosterior, pairs: NodePairs, rest: NodePairs) -> None:
        self.posterior, self.pairs, self.rest = posterior, pairs, rest
        counts, sure = posterior.counts, posterior.sure
        self.counts = np.where(pairs.after >= 0, counts[pairs.window], 0.0)
        groups = [posterior.group, *(posterior.group_of(p.window, p.here) for p in (pairs, rest))]
        keys, group = np.unique(np.concatenate(groups), return_inverse=True)
        ends = np.cumsum([len(part) for part in groups])[:-1]
        _, self.of_pairs, self.of_other = np.split(group, ends)
        edges = posterior.edges // posterior.size
        self.of_edge = np.searchsorted(keys, edges)
        self.groups = len(keys)
        self.edge = np.searchsorted(posterior.edges, groups[1] * posterior.size + pairs.after)
        self.edge = np.where(pairs.after >= 0, self.edge, -1)
        self.tables = []
        window = np.concatenate([sure, pairs.window, rest.window])
        for codes, size in posterior.seen:
            _, cell = np.unique(group * size + codes[window], return_inverse=True)
            among = posterior.made * size + codes
            total = group_weights(among, counts)
            each = total[among] / group_weights(posterior.made, counts)[posterior.made]
            of_sure, of_pairs, of_rest = np.split(cell, ends)
            base = group_weights(of_sure, counts[sure], int(cell.max(initial=-1)) + 1)
            self.tables.append((base, of_pairs, of_rest, each[pairs.window], each[rest.window]))

    def shares(self, share: Array) -> Array:  # [pairs]
        """Return the shares of pairs, given those of the round before; zeros at first."""
        edges, groups = self._counted(share)
        weight = np.where(self.edge >= 0, edges[self.edge], groups[self.of_pairs])
        log = self.pairs.log + np.log(weight)
        for base, cell, _, usual, _ in self.tables:
            seen = base + group_weights(cell, share * self.counts, len(base))
            log += np.log((seen[cell] + usual) / (groups[self.of_pairs] + 1))
        return _softmax(log, self.pairs.window, len(self.posterior.counts))

    def of_rest(self, share: Array) -> Array:
        """Return the shares of the other pairs, given those of the pairs."""
        _, groups = self._counted(share)
        log = self.rest.log + np.log(groups[self.of_other])
        for base, cell, mine, _, usual in self.tables:
            seen = base + group_weights(cell, share * self.counts, len(base))
            log += np.log((seen[mine] + usual) / (groups[self.of_other] + 1))
        return _softmax(log, self.rest.window, len(self.posterior.counts))

    def _counted(self, share: Array) -> tuple[Array, Array]:
        """Return the steps along each edge, and from each node by each decision."""
        led = self.edge >= 0
        more = (share * self.counts)[led]
        edges = self.posterior.certain + group_weights(self.edge[led], more, len(self.of_edge))
        return edges, group_weights(self.of_edge, edges, self.groups)


def _softmax(log: Array, window: Ints, size: int) -> Array:
    """Return weights in proportion to exponentials, with sum 1 for each window."""
    highest = np.full(size, -np.inf)
    np.maximum.at(highest, window, log)
    weight = np.exp(log - np.where(np.isneginf(highest), 0.0, highest)[window])
    total = group_weights(window, weight, size)
    return np.asarray(weight / np.where(total > 0, total, 1.0)[window])


def _seen_after(windows: Windows) -> list[str]:
    """Return what is observed after the first decision: later information sets, and the utility."""
    schema = windows.schema
    later = [name for group in schema.information_sets[1:] for name in group]
    return [*later, schema.utility]


def _categories(windows: Windows, name: str) -> tuple[Ints, int]:
    """Return codes of a variable in all windows, and how many there are; numbers are binned."""
    groups = joint_groups([windows.columns[name]], len(windows))
    if groups.size > MOST_VALUES and windows.columns[name].kind in NUMBERS:
        numbers = windows.columns[name].numbers()
        edges = np.nanquantile(numbers, np.arange(1, BINS) / BINS)
        return np.where(np.isnan(numbers), BINS, np.searchsorted(edges, numbers)), BINS + 1
    return groups.codes.astype(np.int64), groups.size
