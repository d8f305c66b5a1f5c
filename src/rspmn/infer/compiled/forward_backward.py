"""Episodes under a recurrent network: from the end of each to its start, all abreast.

Each distinct step is sent once through the roots that it may be in. What is left of it are few
numbers: how likely it is under root i if the next step is reached by way of site s. With them one
pass over time gives the likelihood of every episode. The plain form, one episode at a time, is
`rspmn.infer.likelihood.episode_log_likelihood`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rspmn.data.columns import Column
from rspmn.data.episodes import Episodes, Followed
from rspmn.data.keys import joint_groups
from rspmn.errors import EvidenceError
from rspmn.infer.compiled.layers import log_sums, ranges
from rspmn.infer.compiled.leaf_tables import Distinct
from rspmn.infer.compiled.state_index import StateIndex
from rspmn.infer.compiled.ways import RootTrees, Sites, Ways
from rspmn.model import RSPMN
from rspmn.types import Array, Ints

#: At most this many floats are held per chunk of episodes.
CHUNK = 4_000_000

#: Changes what sites pass up: (this, row, entry), all [entries].
Mix = Callable[[Array, Ints, Ints], Array]


@dataclass(frozen=True, eq=False)
class Reached:
    """Which roots some rows may be in."""

    row: Ints  # [pairs], sorted
    root: Ints  # [pairs]
    logs: Array  # [pairs], the log-likelihood from here on

    def summed(self, weights: Array, rows: int) -> Array:  # [rows]
        """Return the log-likelihood of each row, the roots having some weights."""
        found = np.full(rows, -np.inf)
        if len(self.row):
            starts = np.flatnonzero(np.append(True, self.row[1:] != self.row[:-1]))
            with np.errstate(divide="ignore"):
                found[self.row[starts]] = log_sums(np.log(weights[self.root]) + self.logs, starts)
        return found


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
    final: Array  # [interfaces, distinct final states], their log-likelihood
    final_of: Ints  # [num_episodes], which of them

    def after_last(self, log: "Abreast") -> Array:
        """Return the log-likelihood of what followed the last steps, [interfaces, episodes]."""
        found = np.zeros((self.model.num_interfaces, len(log)))
        ended = log.endings == Followed.END
        found[:, ended] = -np.inf
        if self.model.end is not None:
            found[self.model.end, ended] = 0.0
        seen = np.flatnonzero(log.endings == Followed.STATE)
        if len(seen):
            found[:, seen] = self.final[:, self.final_of[log.which[seen]]]
        return found

    def reach(self, kinds: Ints, future: Array) -> tuple[Ints, Ints, Array, Array]:
        """Combine steps with what the interface nodes after them pass up.

        Given the kind of each row and `future` [interfaces, rows], returned are the row of each
        entry, its number, what its site passes up, and both together.
        """
        entry, first = ranges(self.starts[kinds], self.starts[kinds + 1])
        row = np.repeat(np.arange(len(kinds)), np.diff(first))
        ahead = site_logs(self.sites, self.site[entry], row, future)
        return row, entry, ahead, self.logs[entry] + ahead

    def by_root(self, row: Ints, entry: Ints, logs: Array) -> Reached:
        """Add up the entries of each row and root."""
        if not len(entry):
            return Reached(row, self.root[entry], logs)
        root = self.root[entry]
        new = np.append(True, (row[1:] != row[:-1]) | (root[1:] != root[:-1]))
        starts = np.flatnonzero(new)
        return Reached(row[starts], root[starts], log_sums(logs, starts))

    def backward(self, log: "Abreast") -> list[Array]:
        """Return, for each time from 0 on, the log-likelihood of all from then on by root.

        The last of them is what followed the last steps. [times + 1][interfaces, episodes]
        """
        future = self.after_last(log)
        passes = [future.copy()]
        passes += [future.copy() for _ in self.steps_back(log, future)]
        return passes[::-1]

    def steps_back(
        self, log: "Abreast", future: Array, mix: Mix | None = None
    ) -> Iterator[tuple[Ints, Reached]]:
        """Replace `future` by the log-likelihood from an earlier time on, time by time.

        Only what changes is written, as a row may be in few roots. Yielded are, for each time from
        the last to the first, the kinds of the steps and the roots that they may be in.

        Parameters
        ----------
        log
            The episodes.
        future
            The log-likelihood of what followed the last steps, [interfaces, episodes].
        mix
            If given, replaces what sites pass up: (these, row, entry) -> others, all [entries].
        """
        known, before = 0, None
        for t in reversed(range(log.longest)):
            kinds = self.step[log.first[: log.running(t)] + t]
            row, entry, ahead, logs = self.reach(kinds, future)
            if mix is not None:
                logs = self.logs[entry] + mix(ahead, row, entry)
            reached = self.by_root(row, entry, logs)
            if before is not None:
                future[before.root, before.row] = -np.inf
            future[:, known : len(kinds)] = -np.inf  # episodes of which this is the last step
            future[reached.root, reached.row] = reached.logs
            known, before = len(kinds), reached
            yield kinds, reached


def site_logs(sites: Sites, site: Ints, row: Ints, future: Array) -> Array:
    """Return what sites pass up, each in some row of what the interface nodes after it do."""
    edge, first = ranges(sites.starts[site], sites.starts[site + 1])
    which = np.repeat(row, np.diff(first))
    if not len(edge):
        return np.zeros(len(site))
    ahead = np.log(sites.weights[edge]) + future[sites.interfaces[edge], which]
    return log_sums(ahead, first[:-1])


def kernel_of(model: RSPMN, episodes: Episodes) -> Kernel:
    """Evaluate the distinct steps of a log in a template."""
    schema = model.schema
    if sorted(schema.variables) != sorted(episodes.schema.variables):
        raise EvidenceError(
            f"the model's variables are {list(schema.variables)}, "
            f"the episodes' {list(episodes.schema.variables)}"
        )
    names = [name for name in schema.variables if name != schema.utility]
    index = StateIndex(model)
    groups = joint_groups([episodes.columns[name] for name in names], episodes.num_steps)
    kinds = {name: episodes.columns[name].take(groups.members()) for name in names}
    columns = {name: Distinct.of(column) for name, column in kinds.items()}
    possible = _state_logs(index, kinds, groups.size) > -np.inf
    trees = RootTrees(model.template)
    row, root = np.nonzero(possible.T)
    ways = Ways(trees, columns, row, root)
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
        _state_logs(index, {n: c.take(members) for n, c in episodes.finals.items()}, finals.size),
        finals.codes.astype(np.int64),
    )


def _state_logs(index: StateIndex, columns: dict[str, Column], rows: int) -> Array:
    """Return the log-likelihood of states, [interfaces, rows]."""
    return index.compiled({name: Distinct.of(columns[name]) for name in index.names}, rows)


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
    def chunks(cls, episodes: Episodes, interfaces: int, times: bool) -> Iterator["Abreast"]:
        """Lay out a log, so many episodes at once as can be held, for all times or one."""
        order = np.argsort(-episodes.lengths, kind="stable")
        longest = int(episodes.lengths.max(initial=1)) if times else 1
        step = max(1, CHUNK // (interfaces * (longest + 1)))
        for start in range(0, len(order), step):
            which = order[start : start + step]
            yield cls(
                which, episodes.offsets[which], episodes.lengths[which], episodes.endings[which]
            )
