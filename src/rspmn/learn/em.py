"""Further expectation maximisation over sequences (Alg. 6, repeated).

The first pass of hard EM needs windows only. Where states do not determine interface nodes, as
with overlapping clusters or missing values, what came before and after does. Then sequences are
passed up and down until the assignment no longer changes. Hard EM follows the likeliest child of
every sum. Soft EM divides steps among children by probability, so that the likelihood never falls.
"""

import math
import time
from dataclasses import dataclass, field, replace

import numpy as np

from rspmn.data.episodes import Episodes, Followed, check_episodes
from rspmn.data.keys import group_weights
from rspmn.data.windows import fair_endings
from rspmn.errors import DataError
from rspmn.infer.compiled.beliefs import Beliefs
from rspmn.infer.compiled.forward_backward import (
    Abreast,
    Ahead,
    StepBack,
    edges_ahead,
    kernel_of,
)
from rspmn.infer.compiled.relations import Relation
from rspmn.infer.compiled.template_trees import Ways
from rspmn.learn.flows import Flows, Moments, ranges_of
from rspmn.learn.rebuild import rebuild
from rspmn.learn.successors.untried import UntriedBranches
from rspmn.model import RSPMN
from rspmn.types import Array, Ints


@dataclass
class EMInfo:
    """What happened in the passes of EM."""

    #: Before each pass and after the last, of all episodes that are possible, added up.
    log_likelihoods: list[float] = field(default_factory=list)
    impossible: int = 0  # episodes that the model gives no probability to: they take no part
    converged: bool = False  # whether the assignment, or the likelihood, stopped changing


def em(
    model: RSPMN,
    episodes: Episodes,
    passes: int,
    soft: bool = False,
    *,
    deadline: float = math.inf,
) -> tuple[RSPMN, EMInfo]:
    """Re-estimate the weights of all sums and the utilities of a model, structure unchanged.

    Parameters
    ----------
    model
        The model.
    episodes
        The log. Episodes that are impossible in the model take no part.
    passes
        The most passes over the log, 1 or more.
    soft
        Divide steps by probability, instead of following the likeliest child of every sum.
    deadline
        No pass begins after this `time.monotonic()`.
    """
    if passes < 1:
        raise DataError(f"em: expected 1 or more passes, found {passes}")
    check_episodes(episodes)
    info = EMInfo()
    episodes = replace(episodes, endings=fair_endings(episodes.lengths, episodes.endings))
    before: Array | None = None
    for _ in range(passes):
        if time.monotonic() >= deadline:
            break
        step = _Expectation(model, episodes, hard=not soft)
        info.log_likelihoods.append(step.log_likelihood)
        info.impossible = step.impossible
        if before is not None and len(before) == len(step.passed):
            info.converged = bool(np.allclose(before, step.passed, rtol=1e-9, atol=1e-9))
            if info.converged:
                return model, info
        before = step.passed
        model = rebuild(model, step.kernel.ways.trees, step.flows(), UntriedBranches.of(model))
    info.log_likelihoods.append(_Expectation(model, episodes, hard=not soft).log_likelihood)
    return model, info


class _Expectation:
    """One pass down a log: how often each entry of the kernel was gone through."""

    def __init__(self, model: RSPMN, episodes: Episodes, hard: bool) -> None:
        self.model, self.hard = model, hard
        self.kernel = kernel = kernel_of(model, episodes)
        size = len(kernel.logs)
        self.passed = np.zeros(size)  # [entries], weight of all steps
        self.known = np.zeros((3, size))  # with a known successor: weight, · utility, · its square
        #: Entry · interface nodes + the one that followed, sorted; and, of each, as `known`.
        self.led = np.zeros(0, np.int64), np.zeros((3, 0))
        self.starts, self.visits = np.zeros((2, model.num_interfaces))
        self.log_likelihood, self.impossible = 0.0, 0
        top = np.array(model.starts)
        earned = episodes.columns[model.schema.utility].data
        self.lowest = float(earned.min(initial=0.0))
        ended = np.zeros(len(earned), dtype=bool)
        ended[episodes.offsets[1:][episodes.endings == Followed.END] - 1] = True
        self.rewards = ranges_of(earned, ended)
        for log in kernel.chunks(episodes, times=True):
            self._add(log, top, earned - self.lowest)

    def _add(self, log: Abreast, top: Array, earned: Array) -> None:
        last = self.kernel.after_last(log)
        steps = list(self.kernel.steps_back(log, last))[::-1]
        first, rows = steps[0].here.pairs, len(log)
        total = first.summed(top, rows)
        possible = total > -np.inf
        self.impossible += int((~possible).sum())
        self.log_likelihood += float(total[possible].sum())
        begun = first.where(top[first.node] > 0)
        logs = begun.logs + np.log(top[begun.node])
        belief = self._belief(begun.row, begun.node, np.exp(logs - total[begun.row]), rows)
        self.starts += group_weights(belief.nodes, belief.weights, len(self.starts))
        after = [*(step.here for step in steps[1:]), last]
        led = [self.led]
        for t, (step, future) in enumerate(zip(steps, after, strict=True)):
            of_steps = earned[log.first[: len(step.kinds)] + t]
            belief, flow = self._step(step, future, belief, of_steps)
            led.append(flow)
        keys, which = np.unique(np.concatenate([key for key, _ in led]), return_inverse=True)
        sums = np.concatenate([part for _, part in led], axis=1)
        self.led = keys, np.stack([group_weights(which, part, len(keys)) for part in sums])

    def _belief(self, row: Ints, node: Ints, weight: Array, rows: int) -> Beliefs:
        """Return how probable each node is in each row; the likeliest is certain in hard EM."""
        size = len(self.starts)
        keys, which = np.unique(row * size + node, return_inverse=True)
        weight = group_weights(which, weight, len(keys))
        if self.hard:
            largest = _largest_of_row(weight, keys // size) > 0
            keys, weight = keys[largest], np.ones(np.count_nonzero(largest))
        found = Relation.of_keys(keys, rows, size)
        return Beliefs(found.starts, found.items, weight)

    def _step(
        self, step: StepBack, future: Ahead, belief: Beliefs, earned: Array
    ) -> tuple[Beliefs, tuple[Ints, Array]]:
        """Pass the belief through a step; return that about the next one, and where it was led."""
        root, logs = self.kernel.root[step.entry], step.logs
        held = slice(0, belief.starts[len(step.kinds)])
        self.visits += group_weights(belief.nodes[held], belief.weights[held], len(self.visits))
        believed = Relation(belief.starts, belief.nodes, len(self.starts))
        weight = np.append(belief.weights, 0.0)[believed.find(step.row, root)]
        live = (weight > 0) & (logs > -np.inf)
        row, entry, ahead = step.row[live], step.entry[live], step.ahead[live]
        here = step.here.pairs.logs[step.here.relation.find(row, root[live])]
        weight = weight[live] * np.exp(logs[live] - here)
        known = ~future.is_cut[row]
        if self.hard:
            weight = _largest_of_row(weight, row) * known
        np.add.at(self.passed, entry, weight)
        utility = earned[row]
        for power in range(3):
            np.add.at(self.known[power], entry, weight * known * utility**power)
        step = replace(step, row=row[known], entry=entry[known], ahead=ahead[known])
        return self._lead_on(step, future, weight[known], utility[known])

    def _lead_on(
        self, step: StepBack, future: Ahead, weight: Array, utility: Array
    ) -> tuple[Beliefs, tuple[Ints, Array]]:
        """Return the belief about the next step, and how often entries led to interface nodes.

        Given are the entries of steps whose successor is known, their weights and utilities.
        """
        row, entry = step.row, step.entry
        k, pair, weights = edges_ahead(self.kernel.sites, self.kernel.site[entry], row, future)
        share = np.exp(np.log(weights) + future.pairs.logs[pair] - step.ahead[k])
        if self.hard:
            share = _largest_of_row(share, k)
        some = np.flatnonzero(weight[k] * share > 0)
        k, node, flow = k[some], future.pairs.node[pair[some]], (weight[k] * share)[some]
        led = np.stack([flow * utility[k] ** power for power in range(3)])
        belief = self._belief(row[k], node, flow, len(future))
        return belief, (entry[k] * len(self.starts) + node, led)

    def flows(self) -> Flows:
        """Return the flow through every position of the template."""
        kernel, ways = self.kernel, self.kernel.ways
        found = Flows.none(ways.trees)
        found.starts = self.starts
        before = np.array(self.model.visits or (0.0,) * self.model.num_interfaces)
        found.visits = np.where(self.visits > 0, self.visits, before)  # a frontier's are arrivals
        size = len(ways.trees)
        passed, steps, earned, squares = (
            group_weights(
                ways.position, _share_out(ways, kernel.instance, kernel.logs, amount), size
            )
            for amount in (self.passed, *self.known)
        )
        found.passed, found.steps = ways.trees.shared(passed), steps
        mean = earned / np.where(steps > 0, steps, 1.0)
        found.mean = mean + self.lowest
        found.squares = np.maximum(0.0, squares - steps * mean**2)
        (key, led), size = self.led, self.model.num_interfaces
        position, to = ways.position[kernel.instance][key // size], key % size
        found.count_successors(position, to, led[0])
        found.logged, found.rewards = self._logged(position * size + to, led), self.rewards
        return found

    def _logged(self, key: Ints, sums: Array) -> Moments:
        """Return the moments of utilities, given sums of their powers."""
        keys, group = np.unique(key, return_inverse=True)
        steps, earned, squares = (group_weights(group, part, len(keys)) for part in sums)
        mean = earned / steps
        squares = np.maximum(0.0, squares - steps * mean**2)
        return Moments(keys, steps, mean + self.lowest, squares)


def _share_out(ways: Ways, instance: Ints, logs: Array, amount: Array) -> Array:  # [instances]
    """Divide amounts at sites among all instances above and beside them, by likelihood.

    `instance` is the site of each amount, `logs` the log-likelihood of the way to it. With what
    each site passes up set to the amount over that likelihood, the flow down to it is the amount.
    """
    given = np.zeros(len(ways.site))  # other sites are impossible
    with np.errstate(divide="ignore"):
        given[instance] = np.log(amount) - logs
    whole = group_weights(ways.pair[instance], amount, len(ways.row))
    return ways.down(ways.up(given), whole)


def _largest_of_row(weight: Array, row: Ints) -> Array:
    """Return 1 for the first largest weight of each row above 0, 0 for others; rows are sorted."""
    if not len(weight):
        return weight
    order = np.lexsort((-weight, row))
    first = order[np.append(True, row[order][1:] != row[order][:-1])]
    found = np.zeros(len(weight))
    found[first] = weight[first] > 0
    return found
