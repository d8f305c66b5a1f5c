"""New data for an old structure: parameters anew from windows, and whether it still fits.

Windows add up. Those of a new batch are added to the old ones, and everything that is counted is
counted again; what was split and what was not stays as it is.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rspmn.circuit import Utility
from rspmn.data.coding import Column
from rspmn.data.episodes import Episodes, Followed
from rspmn.data.windows import Windows
from rspmn.errors import DataError
from rspmn.infer.row_likelihood import Distinct
from rspmn.infer.sequences import entries_of
from rspmn.infer.state_index import StateIndex
from rspmn.infer.subtrees import Instances, Subtrees
from rspmn.learn.independence import pair_statistics
from rspmn.learn.reestimate import Flows, rebuilt, spread
from rspmn.learn.routing import NOWHERE, distinct_states
from rspmn.learn.rows import Rows, table_of, weigh
from rspmn.model import RSPMN
from rspmn.schema import Kind

__all__ = ["RefitInfo", "refit"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

#: The interface node of a state, lacking values, that may be in several: it takes no part.
SEVERAL = -2
#: How likely it is that a structure that fits is said not to.
ALPHA = 0.01


@dataclass
class RefitInfo:
    """What was re-estimated, and what the structure has no place for."""

    steps: int = 0  # all
    new_states: int = 0  # steps in, or to, a state that no interface node knows
    new_decisions: int = 0  # steps with decisions that were never made in their interface node
    new_ends: int = 0  # ends of episodes, where the model knows of none
    doubtful: int = 0  # steps in, or to, a state that lacks values and may be in several nodes
    apart: list[int] = field(default_factory=list)  # nodes whose states no longer behave alike

    @property
    def fits(self) -> bool:
        """Whether the structure has a place for everything, and keeps alike what is alike."""
        return not self.reasons

    @property
    def reasons(self) -> list[str]:
        """Why the structure no longer fits; learn anew if it does not."""
        found = []
        if self.new_states:
            found.append(f"{self.new_states} steps are in or lead to states that are new")
        if self.new_decisions:
            found.append(f"{self.new_decisions} steps hold decisions that are new in their state")
        if self.new_ends:
            found.append(f"{self.new_ends} episodes ended, but the model knows no end")
        if self.apart:
            found.append(f"states of interface nodes {self.apart} no longer behave alike")
        return found


def refit(model: RSPMN, log: Windows | Episodes) -> tuple[RSPMN, RefitInfo]:
    """Estimate weights and utilities of a model anew, its structure and its leaves unchanged.

    From all of the log: to add a batch, add its windows to those learned from. Steps that the
    structure has no place for are left out and counted.

    >>> from rspmn.envs.frozen_lake import frozen_lake
    >>> from rspmn.learn import learn_rspmn
    >>> logs = [frozen_lake().generate(4000, 20, seed) for seed in (1, 2)]
    >>> one, two = map(Windows.from_episodes, logs)
    >>> model, info = learn_rspmn(one)
    >>> model, check = refit(model, one + two)
    >>> check.fits
    True
    """
    schema = model.schema
    windows = log if isinstance(log, Windows) else Windows.from_episodes(log)
    if sorted(schema.variables) != sorted(windows.schema.variables):
        raise DataError(
            f"the model's variables are {list(schema.variables)}, "
            f"the windows' {list(windows.schema.variables)}"
        )
    info = RefitInfo(steps=int(windows.counts.sum()))
    states = distinct_states(windows)
    of_states = _routed(model, states.columns, states.count)
    here = of_states[states.of_steps]
    after = np.where(states.of_successors >= 0, of_states[states.of_successors], NOWHERE)
    ended = windows.followed == Followed.END
    after[ended] = NOWHERE if model.end is None else model.end
    led = (windows.followed != Followed.UNKNOWN) & (after != SEVERAL)
    trees = Subtrees(model.template, apart=True)
    flows, placed = _flows(model, trees, windows, here, np.where(led, after, NOWHERE))
    _count_starts_and_visits(model, flows, windows, here, after)
    info.new_ends = int(windows.counts[ended & (after == NOWHERE)].sum())
    strange = (here == NOWHERE) | ((after == NOWHERE) & led & ~ended)
    info.new_states = int(windows.counts[strange].sum())
    info.new_decisions = int(windows.counts[(here >= 0) & led & ~placed].sum())
    several = (here == SEVERAL) | (after == SEVERAL)
    info.doubtful = int(windows.counts[several].sum())
    info.apart = _no_longer_alike(windows, states.of_steps, here, after)
    return rebuilt(model, trees, flows), info


def _routed(model: RSPMN, columns: dict[str, Column], count: int) -> Ints:  # [count]
    """Return the interface node of each state, NOWHERE if none knows it, or SEVERAL."""
    index = StateIndex(model)
    known = {name: Distinct.of(column) for name, column in columns.items()}
    scores = index.compiled(known, count) + index.prior[:, None]
    possible = (scores > -np.inf).sum(axis=0)
    several = np.where(possible == 0, NOWHERE, SEVERAL)
    return np.where(possible == 1, scores.argmax(axis=0), several)


def _flows(
    model: RSPMN, trees: Subtrees, windows: Windows, here: Ints, after: Ints
) -> tuple[Flows, NDArray[np.bool_]]:
    """Send every window down its interface node; return what flowed, and which had a way."""
    names = [name for name in model.schema.variables if name != model.schema.utility]
    columns = {name: Distinct.of(windows.columns[name]) for name in names}
    row = np.flatnonzero(here >= 0)
    instances = Instances(trees, columns, row, here[row])
    window, _, _, logs, instance = entries_of(instances)
    placed = np.zeros(len(windows), dtype=bool)
    placed[window] = True
    earned = windows.columns[model.schema.utility].data
    chosen = _nearest(trees, instances.position[instance], window, logs, earned)
    window, logs, instance = window[chosen], logs[chosen], instance[chosen]
    known = after[window] >= 0
    window, logs, instance = window[known], logs[known], instance[known]
    counts, utility = windows.counts[window].astype(np.float64), earned[window]
    found = Flows.none(trees)
    low = float(utility.min(initial=0.0))
    found.steps, found.edges = spread(instances, instance, logs, counts)
    above = spread(instances, instance, logs, counts * (utility - low))[0]
    squares = spread(instances, instance, logs, counts * (utility - low) ** 2)[0]
    found.earned = above + low * found.steps
    found.squares = squares + 2 * low * above + low * low * found.steps
    places = instances.position[instance].tolist()
    for position, to, count in zip(places, after[window].tolist(), counts.tolist(), strict=True):
        led = found.led.setdefault(position, {})
        led[to] = led.get(to, 0.0) + count
    return found, placed


def _nearest(
    trees: Subtrees, position: Ints, window: Ints, logs: Array, earned: Array
) -> NDArray[np.bool_]:  # [entries]
    """Choose one way for each window: likely, and with a utility like the one earned."""
    means, variances = _utilities(trees)
    away = (earned[window] - means[position]) ** 2
    score = logs - away / (2 * (variances[position] + 1e-9 * (1 + means[position] ** 2)))
    order = np.lexsort((-score, window))
    chosen = np.zeros(len(window), dtype=bool)
    if len(window):
        chosen[order[np.append(True, np.diff(window[order]) != 0)]] = True
    return chosen


def _utilities(trees: Subtrees) -> tuple[Array, Array]:
    """Return mean and variance of the utility beside or above each position."""
    means, variances = np.zeros((2, len(trees.nodes)))
    nodes = trees.template.nodes
    for start, first, last in zip(
        trees.node_starts[:-1], trees.edge_starts[:-1], trees.edge_starts[1:], strict=True
    ):
        edges = [(int(trees.parent[e]), int(trees.child[e])) for e in range(first, last)]
        beside: dict[int, Utility] = {}
        for parent, child in edges:
            node = nodes[int(trees.nodes[start + child])]
            if isinstance(node, Utility):
                beside[parent] = node
        for parent, child in reversed(edges):  # from the root down: parents stand last
            found = beside.get(parent)
            if found is not None:
                beside.setdefault(child, found)
                means[start + child], variances[start + child] = found.mean, found.variance
    return means, variances


def _count_starts_and_visits(
    model: RSPMN, flows: Flows, windows: Windows, here: Ints, after: Ints
) -> None:
    size = model.num_interfaces
    at, to = here >= 0, after >= 0
    flows.starts = weigh(here[at], windows.starts[at].astype(np.float64), size)
    flows.visits = weigh(here[at], windows.counts[at].astype(np.float64), size)
    arrived = weigh(after[to], windows.counts[to].astype(np.float64), size)
    frontier = (flows.visits == 0) & (np.arange(size) != model.end)
    flows.visits[frontier] = arrived[frontier]


def _no_longer_alike(windows: Windows, state: Ints, here: Ints, after: Ints) -> list[int]:
    """Return the interface nodes in which the state tells about utility or successor."""
    known = (after >= 0) & (here >= 0)
    schema = windows.schema
    columns = {
        "state": _categories(state),
        "after": _categories(after),
        "u": windows.columns[schema.utility],
    } | {name: windows.columns[name] for name in schema.decisions}
    counts = windows.counts.astype(np.float64)
    table = table_of(columns, np.where(known, counts, 0.0), bins=10)
    found = []
    nodes = np.unique(here[known])
    for node in nodes.tolist():
        index = np.flatnonzero(known & (here == node))
        rows = Rows(table, index, counts[index])
        if rows.varies("state"):
            strata = rows.joint_codes(schema.decisions)
            p = pair_statistics(rows, ["state"], ["after", "u"], strata).p_values()
            if p.min() < ALPHA / (2 * len(nodes)):
                found.append(node)
    return found


def _categories(numbers: Ints) -> Column:
    distinct, codes = np.unique(numbers, return_inverse=True)
    return Column(Kind.CATEGORICAL, codes.astype(np.int32), tuple(distinct.tolist()))
