"""Decisions in states that may be in several interface nodes.

A state that is partial, or near a soft border, leaves several nodes possible. An action that is
chosen now is worth the average of what it is planned to be worth in each of them, as
`rspmn.infer.actions` has it for the network; here it is array code over many states.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rspmn.data.distinct import distinct_counts
from rspmn.infer.actions import best_values
from rspmn.infer.branches import Branches
from rspmn.infer.compiled.beliefs import Beliefs, Routes
from rspmn.infer.compiled.offers import Offers
from rspmn.infer.compiled.planned import Plan
from rspmn.infer.compiled.steps_to_go import At
from rspmn.infer.criterion import (
    LEAST_KNOWN,
    MEU,
    best_branches,
    has_ties,
    scored,
    soonest,
    soonest_of_each,
)
from rspmn.types import Array, Bools, Ints


@dataclass(frozen=True, eq=False)
class Situation:
    """Some states before a decision: the max nodes that each may be at."""

    offers: Offers
    beliefs: Beliefs
    at: Ints  # [pairs], numbers of max nodes
    decision: str

    @cached_property
    def branches(self) -> Ints:  # [pairs, values]
        """The branch that offers each value, -1 for none."""
        return self.offers.branches(self.decision)[self.at]

    def averages(self, at: At) -> "Averages":
        """Return what is planned at the max nodes, averaged over where each state may be."""
        found = self.beliefs.sums(at.rows(self.branches))
        values = found.shape[1] // 5
        parts = [found[:, k : k + values] for k in range(1, 1 + 5 * values, values)]
        offered, known, worth, delay, supported = parts
        total = found[:, :1] if found[:, 0].all() else np.maximum(found[:, :1], 1e-300)
        with np.errstate(invalid="ignore", divide="ignore"):
            worth, delay = worth / known, delay / known
        if not known.all():
            worth = np.where((known == 0) & (offered > 0), -np.inf, worth)
            delay = np.where(known == 0, 0.0, delay)
        return Averages(offered / total, known / total, worth, delay, supported / total)

    def averages_of_one(self, at: At) -> "OneAverage":
        """Return `averages` in the only state, for few numbers."""
        total, *found = (self.beliefs.weights @ at.rows(self.branches)).tolist()
        values, total = len(found) // 5, total or 1.0
        offered, known, worth, delay, supported = (
            found[k : k + values] for k in range(0, 5 * values, values)
        )
        return OneAverage(
            [o / total for o in offered],
            [k / total for k in known],
            [
                w / k if k else -math.inf if o else math.nan
                for w, k, o in zip(worth, known, offered, strict=True)
            ],
            [d / k if k else 0.0 for d, k in zip(delay, known, strict=True)],
            [s / total for s in supported],
        )

    def on_offer(self, offered: Bools, planned: Plan, after: int) -> Branches:
        """Return the actions that are offered as branches, each state a node.

        An action is the branches of all max nodes that it may be taken in. `offered`: which values
        some max node of each state offers. [states, values]
        """
        steps = None
        if planned.model.overlaps:  # a state may be at each max node: the likelier ones count more
            of_pairs = planned.steps_of_branches(self.branches, after)
            found = self.beliefs.sums(np.hstack([of_pairs, np.ones((len(of_pairs), 1))]))
            steps = (found[:, :-1] / np.maximum(found[:, -1:], 1e-300))[offered]
        counts = offered.sum(axis=1)
        counts = counts[counts > 0]

        def edges() -> tuple[Ints, Ints]:
            pair, value = np.nonzero(self.branches >= 0)
            state = np.repeat(np.arange(len(self.beliefs)), np.diff(self.beliefs.starts))[pair]
            action = state * self.branches.shape[1] + value
            size = len(self.offers.edges)
            keys, _ = distinct_counts(action * size + self.branches[pair, value])
            action, branch = np.divmod(keys, size)
            return self.offers.edges[branch], np.flatnonzero(np.append(True, np.diff(action) != 0))

        starts = np.cumsum(counts) - counts
        return Branches(self.offers.context, starts, int(counts.sum()), edges, steps)

    def after(self, chosen: Ints) -> tuple[Beliefs, Ints]:
        """Return beliefs and max nodes once a value is chosen in each state; -1 is none."""
        value = np.repeat(chosen, np.diff(self.beliefs.starts))
        branch = np.where(value >= 0, self.branches[np.arange(len(value)), value], -1)
        keep = branch >= 0
        return self.beliefs.where(keep), self.offers.next[branch[keep]]


@dataclass(frozen=True, eq=False)
class Averages:
    """What the values of a decision are worth in some states."""

    available: Array  # [states, values], the probability of a node that offers it
    known: Array  # [states, values], that of knowing what follows, too
    utility: Array  # [states, values], -∞ where that is 0, NaN where no node offers it
    delay: Array  # [states, values], how late that is earned
    supported: (
        Array  # [states, values], the share that is supported to the end, if delays are known
    )


class OneAverage(NamedTuple):
    """The same in one state, each [values]."""

    available: list[float]
    known: list[float]
    utility: list[float]
    delay: list[float]
    supported: list[float]


def scores_of_one(
    planned: Plan, situation: Situation, worth: list[float], after: int
) -> list[float]:
    """Return the criterion's scores of the values of a decision in the only state.

    `worth` is NaN for values that are not offered, and so are their scores.
    """
    if planned.criterion is MEU:
        return worth
    scores = np.array(worth)
    offered = ~np.isnan(scores)
    branches = situation.on_offer(offered[None], planned, after)
    scores[offered] = scored(planned.criterion, scores[offered], branches)
    return list(scores.tolist())


def decide_one(planned: Plan, beliefs: Beliefs, after: int) -> list[int] | None:
    """Return the decisions that are made together in one state, as codes of their values.

    There are none where the model knows none, and None is returned where some node is not made of
    decisions below factors alone: then only the network knows.
    """
    codes: list[int] = []
    at = planned.offers.first[beliefs.nodes]
    for decision in planned.together:
        if (at < 0).any():
            return None
        situation = Situation(planned.offers, beliefs, at, decision)
        found = situation.averages_of_one(planned.at(after))
        scores = scores_of_one(planned, situation, found.utility, after)
        best = best_values(found.available, found.known, found.utility, scores, 2 * planned.bound)
        if not best:
            return []
        if len(best) > 1:
            late = situation.averages_of_one(planned.at(after, delays=True)).delay
            best = [soonest(best, late)]
        codes += best[:1]
        if len(codes) < len(planned.together):
            beliefs, at = situation.after(np.array(best))
    return codes


def decide(planned: Plan, beliefs: Beliefs, after: int) -> tuple[Ints, Bools]:
    """Return what `decide_one` does for many states.

    The codes are [decisions, states], -1 where the model knows none. Also returned is where only
    the network knows. [states]
    """
    codes = np.full((len(planned.together), len(beliefs)), -1)
    is_open = np.zeros(len(beliefs), dtype=bool)
    at = planned.offers.first[beliefs.nodes]
    for k, decision in enumerate(planned.together):
        if (at < 0).any():
            is_open |= beliefs.number_of(at < 0) > 0
            keep = ~np.repeat(is_open, np.diff(beliefs.starts))
            beliefs, at = beliefs.where(keep), at[keep]
        situation = Situation(planned.offers, beliefs, at, decision)
        codes[k] = _best_codes(planned, situation, after)
        if k + 1 < len(planned.together):
            beliefs, at = situation.after(codes[k])
    return np.where((codes < 0).any(axis=0), -1, codes), is_open


def _best_codes(planned: Plan, situation: Situation, after: int) -> Ints:  # [states]
    """Return the best value of each state: the rule is that of `best_values`."""
    found = situation.averages(planned.at(after))
    offered = found.available > 0
    branches = situation.on_offer(offered, planned, after)
    known, worth = found.known[offered], found.utility[offered]
    scores = scored(planned.criterion, worth, branches)
    allowed = ~np.isnan(scores)
    most = np.maximum.reduceat(np.where(allowed, known, 0.0), branches.starts)
    running = allowed & (known >= (LEAST_KNOWN * most)[branches.node])
    numbers = np.where(running, worth, -np.inf)
    scores = numbers if scores is worth else np.where(running, scores, np.nan)
    best = best_branches(numbers, scores, branches, within=2 * planned.bound)[0] & running
    delay = found.delay
    if has_ties(best, branches):
        delay = situation.averages(planned.at(after, delays=True)).delay
    chosen = soonest_of_each(best, delay[offered], branches)
    state, value = (of_branches[chosen[best[chosen]]] for of_branches in np.nonzero(offered))
    codes = np.full(len(offered), -1)
    codes[state] = value
    return codes


def decide_all(planned: Plan, routes: Routes, after: int) -> tuple[Ints, Bools]:
    """Return what `decide` does for the states of a table."""
    codes = np.full((len(planned.together), len(routes.row)), -1)
    is_open = np.zeros(len(routes.row), dtype=bool)
    nodes = np.unique(routes.node[routes.node >= 0])
    if len(nodes):
        of_nodes, open_nodes = decide(planned, Beliefs.certain(nodes), after)
        here = np.flatnonzero(routes.node >= 0)
        which = np.searchsorted(nodes, routes.node[here])
        codes[:, here], is_open[here] = of_nodes[:, which], open_nodes[which]
    for part, beliefs in routes.uncertain():
        codes[:, part], is_open[part] = decide(planned, beliefs, after)
    return codes, is_open
