"""Episodes under a recurrent network: from the end of each to its start, all abreast.

Each distinct step is sent once through the roots that it may be in. What is left of it are few
numbers: how likely it is under root i if the next step is reached by way of site s. With them one
pass over time gives the likelihood of every episode. The plain form, one episode at a time, is
`rspmn.infer.likelihood.episode_log_likelihood`.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rspmn.data.episodes import Episodes, Followed
from rspmn.data.keys import group_weights, joint_groups
from rspmn.errors import EvidenceError
from rspmn.infer.compiled.beliefs import Pairs
from rspmn.infer.compiled.layers import log_sums
from rspmn.infer.compiled.leaf_tables import Distinct
from rspmn.infer.compiled.relations import Relation, common, ranges
from rspmn.infer.compiled.sites import Sites
from rspmn.infer.compiled.state_index import StateIndex
from rspmn.infer.compiled.state_part import state_part
from rspmn.infer.compiled.template_trees import RootTrees, Ways
from rspmn.model import RSPMN
from rspmn.types import Array, Bools, Ints

#: At most about so many pairs of a step and a root are held per chunk of episodes.
CHUNK = 1_000_000

#: Changes what sites pass up: (this, row, entry), all [entries].
Mix = Callable[[Array, Ints, Ints], Array]


class Ahead:
    """What the interface nodes pass up in some episodes from a time on: log-likelihoods.

    An episode may be in few of them. Where the log was cut, all pass up 1.
    """

    def __init__(self, pairs: Pairs, is_cut: Bools, interfaces: int) -> None:
        self.pairs = pairs
        self.is_cut = is_cut  # [episodes]
        self.relation = Relation(pairs.starts(len(is_cut)), pairs.node, interfaces)

    def __len__(self) -> int:
        return len(self.is_cut)

    def summed(self, weights: Array) -> Array:  # [episodes]
        """Return the log-likelihood of each episode, the interface nodes having some weights."""
        return np.where(self.is_cut, math.log(weights.sum()), self.pairs.summed(weights, len(self)))

    def before(self, reached: Pairs, running: int) -> "Ahead":
        """Return what is passed up one step earlier, given where the running episodes may be."""
        pairs = Pairs.concatenated([reached, self.pairs.where(self.pairs.row >= running)])
        is_cut = self.is_cut.copy()
        is_cut[:running] = False
        return Ahead(pairs, is_cut, self.relation.size)


@dataclass(frozen=True, eq=False)
class StepBack:
    """The steps of some episodes at one time, and all that follows them."""

    kinds: Ints  # [running], of the steps
    row: Ints  # [n], the episode of each entry of the kernel that is reached
    entry: Ints  # [n], its number
    ahead: Array  # [n], what its site passes up
    logs: Array  # [n], the log-likelihood of both together
    here: Ahead  # what the interface nodes pass up from this time on


@dataclass(frozen=True, eq=False)
class Kernel:
    """The distinct steps of a log under a template.

    Entry e: a step of kind k is under root `root[e]`, and goes on by way of `site[e]`, with
    log-likelihood `logs[e]`. Those of kind k are the entries `starts[k]:starts[k + 1]`.
    """

    model: RSPMN
    sites: Sites
    step: Ints  # [num_steps], the kind of each step
    columns: dict[str, Distinct]  # of the kinds of steps
    starts: Ints  # [kinds + 1]
    root: Ints  # [entries], sorted within a kind
    site: Ints  # [entries]
    logs: Array  # [entries]
    instance: Ints  # [entries], that of its site in `ways`
    ways: Ways  # of each kind below the roots it may be in
    finals: Pairs  # the roots that distinct final states may be in
    final_of: Ints  # [num_episodes], which of them

    def after_last(self, log: "Abreast") -> Ahead:
        """Return the log-likelihood of what followed the last steps."""
        starts = self.finals.starts(int(self.final_of.max(initial=-1)) + 1)
        seen = np.flatnonzero(log.endings == Followed.STATE)
        final = self.final_of[log.which[seen]]
        entry, first = ranges(starts[final], starts[final + 1])
        ended = np.flatnonzero(log.endings == Followed.END)
        if self.model.end is None:
            ended = ended[:0]
        row = np.concatenate([np.repeat(seen, np.diff(first)), ended])
        node = np.concatenate([self.finals.node[entry], np.full(len(ended), self.model.end or 0)])
        logs = np.concatenate([self.finals.logs[entry], np.zeros(len(ended))])
        order = np.argsort(row, kind="stable")
        pairs = Pairs(row[order], node[order], logs[order])
        return Ahead(pairs, log.endings == Followed.UNKNOWN, self.model.num_interfaces)

    def by_root(self, row: Ints, entry: Ints, logs: Array) -> Pairs:
        """Add up the entries of each row and root."""
        root = self.root[entry]
        if len(entry):
            new = np.append(True, (row[1:] != row[:-1]) | (root[1:] != root[:-1]))
            first = np.flatnonzero(new)
            row, root, logs = row[first], root[first], log_sums(logs, first)
        return Pairs(row, root, logs).where(logs > -np.inf)

    def steps_back(
        self, log: "Abreast", future: Ahead, mix: Mix | None = None
    ) -> Iterator[StepBack]:
        """Return the log-likelihood from each time on, from the last to the first.

        `log`: the episodes. `future`: the log-likelihood of what followed the last steps. `mix`: if
        given, replaces what sites pass up: (these, row, entry) -> others, all [entries].
        """
        for t in reversed(range(log.longest)):
            kinds = self.step[log.first[: log.running(t)] + t]
            entry, first = ranges(self.starts[kinds], self.starts[kinds + 1])
            row = np.repeat(np.arange(len(kinds)), np.diff(first))
            ahead = site_logs(self.sites, self.site[entry], row, future)
            logs = self.logs[entry] + (ahead if mix is None else mix(ahead, row, entry))
            future = future.before(self.by_root(row, entry, logs), len(kinds))
            yield StepBack(kinds, row, entry, ahead, logs, future)

    def chunks(self, episodes: Episodes, times: bool) -> Iterator["Abreast"]:
        """Lay out a log, so many episodes at once as can be held, for all times or one."""
        held = 1 + np.diff(self.starts)[self.step]  # [num_steps]
        combine = np.add if times else np.maximum
        sizes, some = np.ones(len(episodes), np.int64), episodes.lengths > 0
        sizes[some] = combine.reduceat(held, episodes.offsets[:-1][some])
        return Abreast.chunks(episodes, sizes)


def site_logs(sites: Sites, site: Ints, row: Ints, future: Ahead) -> Array:  # [n]
    """Return what sites pass up, each in some row of what the interface nodes after it do."""
    found = np.where(future.is_cut[row], sites.log_totals[site], -np.inf)
    which, pair, weights = edges_ahead(sites, site, row, future)
    if len(which):
        first = np.flatnonzero(np.append(True, which[1:] != which[:-1]))
        found[which[first]] = log_sums(np.log(weights) + future.pairs.logs[pair], first)
    return found


def edges_ahead(
    sites: Sites, site: Ints, row: Ints, future: Ahead
) -> tuple[Ints, Ints, Array]:  # [n] each
    """Return where sites lead to what is ahead, each in some row of it.

    For each k, those of site[k] that lead to a pair of row[k]: k, the pair and the weight; sorted
    by k, then by pair. Factored latents are not multiplied out: only these pairs are looked at.
    """
    relation, weights = sites.counted
    which, edge, pair = common(relation, site, future.relation, row)
    weights, products = weights[edge], sites.products
    if products is None:
        return which, pair, weights
    use, first = ranges(products.starts[site], products.starts[site + 1])
    k = np.repeat(np.arange(len(site)), np.diff(first))
    starts, size = future.relation.starts, len(future.pairs.node)
    after, first = ranges(starts[row[k]], starts[row[k] + 1])
    again = np.repeat(np.arange(len(k)), np.diff(first))
    spread = products.weights(use[again], future.pairs.node[after])
    keys, group = np.unique(
        np.append(which * size + pair, (k[again] * size + after)[spread > 0]), return_inverse=True
    )
    weights = group_weights(group, np.append(weights, spread[spread > 0]), len(keys))
    return keys // max(size, 1), keys % max(size, 1), weights


def kernel_of(model: RSPMN, episodes: Episodes) -> Kernel:
    """Evaluate the distinct steps of a log in a template."""
    schema = model.schema
    if sorted(schema.variables) != sorted(episodes.schema.variables):
        raise EvidenceError(
            f"the model's variables are {list(schema.variables)}, "
            f"the episodes' {list(episodes.schema.variables)}"
        )
    names = [name for name in schema.variables if name != schema.utility]
    states = np.arange(model.num_interfaces) != (-1 if model.end is None else model.end)
    index = StateIndex(schema, state_part(model.template), states.astype(np.float64))
    groups = joint_groups([episodes.columns[name] for name in names], episodes.num_steps)
    kinds = {name: episodes.columns[name].take(groups.members()) for name in names}
    columns = {name: Distinct.of(column) for name, column in kinds.items()}
    trees = RootTrees(model.template)
    possible = index.pairs(kinds, groups.size)
    ways = Ways(trees, columns, possible.row, possible.node)
    entries = entries_of(ways)
    finals = joint_groups(episodes.finals.values(), len(episodes))
    members = finals.members()
    return Kernel(
        model,
        trees.sites,
        groups.codes.astype(np.int64),
        columns,
        np.searchsorted(entries[0], np.arange(groups.size + 1)),
        *entries[1:],
        ways,
        index.pairs({n: c.take(members) for n, c in episodes.finals.items()}, finals.size),
        finals.codes.astype(np.int64),
    )


def entries_of(ways: Ways) -> tuple[Ints, Ints, Ints, Array, Ints]:
    """Return row, root, site, log-likelihood and instance of every site that is reached, sorted.

    Sorted by row, then by root. The log-likelihood is that of the row with this way on from it.
    """
    logs = ways.up()
    roots = logs[: len(ways.row)]
    at = ways.down(logs, np.where(roots > -np.inf, 1.0, 0.0))
    here = np.flatnonzero((ways.site >= 0) & (at > 0))
    pair = ways.pair[here]
    row, root, site = ways.row[pair], ways.root[pair], ways.site[here]
    order = np.lexsort((here, root, row))
    found = roots[pair] + np.log(at[here])
    return row[order], root[order], site[order], found[order], here[order]


@dataclass(frozen=True, eq=False)
class Abreast:
    """Some episodes side by side, the longest first: those running at time t come first."""

    which: Ints  # [episodes], their numbers in the log
    first: Ints  # [episodes], their first steps
    lengths: Ints  # [episodes], not increasing
    endings: NDArray[np.int8]  # [episodes], a Followed

    def __len__(self) -> int:
        return len(self.which)

    @property
    def longest(self) -> int:
        """The steps of the longest."""
        return int(self.lengths.max(initial=0))

    def running(self, t: int) -> int:
        """Return how many episodes have a step at time t."""
        return int(np.searchsorted(-self.lengths, -t, side="left"))

    @classmethod
    def chunks(cls, episodes: Episodes, sizes: Ints) -> Iterator["Abreast"]:
        """Lay out a log, about `CHUNK` at once of what each episode takes."""
        order = np.argsort(-episodes.lengths, kind="stable")
        chunk = np.cumsum(sizes[order]) // CHUNK
        for which in np.split(order, np.flatnonzero(np.diff(chunk)) + 1):
            if len(which):
                first, lengths = episodes.offsets[which], episodes.lengths[which]
                yield cls(which, first, lengths, episodes.endings[which])
