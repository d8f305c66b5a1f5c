"""Algorithm 6, expectation: the interface node of every step, and its likeliest way down.

With the uniform S_L of an initial template, and with any S_L where states tell interface nodes
apart, the likeliest interface node of a step depends on that step alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rspmn.circuit import Utility
from rspmn.data.episodes import Followed
from rspmn.data.keys import joint_groups
from rspmn.data.windows import States, Windows, distinct_states
from rspmn.end_nodes import Template
from rspmn.errors import DataError
from rspmn.infer.compiled.beliefs import Pairs
from rspmn.infer.compiled.layers import KINDS
from rspmn.infer.compiled.leaf_tables import Distinct
from rspmn.infer.compiled.state_index import StateIndex
from rspmn.infer.compiled.template_trees import RootTrees, Ways
from rspmn.memory import IN_PASSING
from rspmn.types import Array, Bools, Ints
from rspmn.values import UNKNOWN

#: The interface node of a state that all interface nodes exclude.
NOWHERE = -1
#: The interface node of a state that lacks values and may be in several: it is not assigned.
SEVERAL = -2
#: About this many pairs of a state and an interface node are evaluated at once.
CHUNK = 1_000_000
#: So many states are evaluated first, to see how many pairs there are.
FIRST = 2_000
#: At most this many windows are sent down at once, fewer if they reach more than IN_PASSING
#: positions.
ROWS = 20_000
#: A utility is known up to this share of it, and this share of the largest.
OWN_ROUNDING, ROUNDING = 1e-6, 1e-9
#: The log-likelihood, over that of any value, of a missing value where the value is always missing.
ABSENT = 1e6

Int32s = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Located:
    """The distinct states of a log, and the interface node of each."""

    states: States
    node: Ints  # [num_states], NOWHERE or SEVERAL if there is none

    def of_steps(self) -> Ints:  # [num_windows]
        """Return the interface node of each window's step."""
        return self.node[self.states.of_steps]

    def of_successors(self, windows: Windows, end: int | None) -> Ints:  # [num_windows]
        """Return the interface node that followed; NOWHERE where that is unknown."""
        after = self.states.of_successors
        found = np.where(after >= 0, self.node[after], NOWHERE)
        found[windows.followed == Followed.END] = NOWHERE if end is None else end
        return found


@dataclass(frozen=True, eq=False)
class Assigned:
    """A log assigned to a template."""

    located: Located
    share: Array  # [num_windows], how much of its occurrences counts here: 1, unless it is shared
    steps: Array  # [num_windows], how many steps it counts as: see `with_those_that_went_on`
    here: Ints  # [num_windows], the interface node of each step, NOWHERE or SEVERAL
    after: Ints  # [num_windows], that of what followed; NOWHERE also where it is unknown
    trees: RootTrees
    window: Ints  # [assigned], the windows that reach an S_L, sorted
    site: Ints  # [assigned], its position
    passed: Int32s  # [visits], the positions on the likeliest way of each window that are counted
    passed_by: Int32s  # [visits], that window
    leaves: bool  # whether leaves are among them


def assign(
    template: Template,
    windows: Windows,
    located: Located | None = None,
    leaves: bool = False,
    share: Array | None = None,
) -> Assigned:
    """Send every window down its interface node, to the S_L that fits it best.

    At the frontier no decision leads to any: what was logged there is not looked at.

    `template`: a model, or an initial template. `located`: the interface nodes of its states, where
    they are known already. `leaves`: whether the leaves on each way are kept, to be estimated from
    what they saw. `share`: how much of its occurrences each window counts, if that is not all
    [num_windows].
    """
    schema = template.schema
    if sorted(schema.variables) != sorted(windows.schema.variables):
        raise DataError(
            f"the model's variables are {list(schema.variables)}, "
            f"the windows' {list(windows.schema.variables)}"
        )
    located = located or locate(template, distinct_states(windows))
    here, after = located.of_steps(), located.of_successors(windows, template.end)
    columns = known_columns(windows)
    decided = (here >= 0) & ~np.append(is_frontier(template), False)[here]
    rows = np.flatnonzero(decided & (windows.followed != Followed.UNKNOWN))
    trees = RootTrees(template.template)
    reached = np.cumsum(trees.sizes[here[rows]])
    counted = trees.counted(leaves)
    earned = windows.columns[schema.utility].data
    passed, passed_by = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    start = 0
    while start < len(rows):
        fit = np.searchsorted(reached, IN_PASSING + reached[start], side="right")
        row = rows[start : min(start + ROWS, int(fit))]
        start += len(row)
        ways = Ways(trees, columns, row, here[row])
        likeliest = ways.likeliest(ways.up(_fit(ways, earned[row])))
        on = np.flatnonzero(likeliest & counted[ways.position])
        passed.append(ways.position[on].astype(np.int32))
        passed_by.append(row[ways.pair[on]].astype(np.int32))
    position, window = np.concatenate(passed), np.concatenate(passed_by)
    ends = np.flatnonzero(trees.site[position] >= 0)
    ends = ends[np.argsort(window[ends], kind="stable")]
    share = np.ones(len(windows)) if share is None else share
    steps = with_those_that_went_on(windows, windows.counts * share, here, after, template.end)
    return Assigned(
        located, share, steps, here, after, trees,
        window[ends].astype(np.int64), position[ends].astype(np.int64), position, window, leaves,
    )  # fmt: skip


def is_frontier(template: Template) -> Bools:  # [interfaces]
    """Return which interface nodes are states in which no decision is known."""
    arrays, roots = template.template.arrays, np.array(template.template.roots)
    codes = [k for k, value in enumerate(arrays.values) if value is UNKNOWN]
    undecided = np.isin(arrays.choice, codes)  # [edges]
    above = np.zeros(len(arrays), dtype=bool)  # [nodes], max nodes with this value
    above[arrays.parents[undecided]] = True
    edges, first = arrays.edges_of(roots)
    found = np.zeros(len(roots), dtype=bool)
    found[np.repeat(np.arange(len(roots)), np.diff(np.append(first, len(edges))))[
        above[arrays.children[edges]]
    ]] = True  # fmt: skip
    if template.unknown is not None:
        found[template.unknown] = False
    return found


def with_those_that_went_on(
    windows: Windows, steps: Array, here: Ints, after: Ints, end: int | None
) -> Array:  # [num_windows]
    """Return how many steps windows count as, given how often each occurred.

    Where steps went on at a time limit, nobody knows where to, those count for them that went on to
    a known node after the same decisions. So ends do not seem likelier than they are.
    """
    went_on = windows.went_on & (here >= 0)
    if not went_on.any():
        return steps
    made = joint_groups([windows.columns[n] for n in windows.schema.decisions], len(windows))
    group = (here + 1) * made.size + made.codes
    known = (here >= 0) & (after >= 0) & (after != (NOWHERE if end is None else end))
    more, some = (
        np.bincount(group[part], steps[part], group.max() + 1) for part in (went_on, known)
    )
    found = steps.copy()
    found[known] *= (1 + more / np.maximum(some, 1e-300))[group[known]]
    return found


def known_columns(windows: Windows) -> dict[str, Distinct]:
    """Return all variables of the steps but the utility."""
    utility = windows.schema.utility
    return {name: Distinct.of(windows.columns[name])
            for name in windows.schema.variables if name != utility}  # fmt: skip


def locate(template: Template, states: States) -> Located:
    """Return the interface node of each state."""
    index = StateIndex.of(template)
    return Located(states, likeliest_roots(index, states, np.arange(states.count)))


def locate_again(template: Template, located: Located) -> Located:
    """Return the interface nodes of states, those that may be in several looked at again.

    Of their nodes only those count that the template says were visited. If one is left, it is it.
    """
    several = np.flatnonzero(located.node == SEVERAL)
    if not len(several):
        return located
    found = likeliest_roots(StateIndex.of(template), located.states, several)
    node = located.node.copy()
    node[several[found >= 0]] = found[found >= 0]
    return Located(located.states, node)


def likeliest_roots(index: StateIndex, states: States, which: Ints) -> Ints:  # [which]
    """Return the likeliest interface node of some states, by their numbers."""
    found = np.full(len(which), NOWHERE)
    lacking = np.zeros(len(which), dtype=bool)
    for column in states.columns.values():
        lacking |= column.missing[which]
    for part, pairs in _pairs(index, states, which):
        rows = part.stop - part.start
        node, possible = pairs.likeliest(index.prior, rows)
        found[part] = np.where(possible == 0, NOWHERE, node)
        found[part][lacking[part] & (possible > 1)] = SEVERAL
    return found


def possible_roots(template: Template, states: States, which: Ints) -> Pairs:
    """Return the interface nodes that some states may be in, and log P(state | node).

    Rows are places in `which`. What a state lacks is marginalised. Nodes that were never visited
    are left out.
    """
    found = []
    if len(which):
        for part, pairs in _pairs(StateIndex.of(template), states, which):
            found.append(replace(pairs, row=part.start + pairs.row))
    return Pairs.concatenated(found)


def _pairs(index: StateIndex, states: States, which: Ints) -> Iterator[tuple[slice, Pairs]]:
    """Return the pairs of some states and interface nodes, so many at a time as can be held."""
    start, step = 0, FIRST
    while start < len(which):
        part = slice(start, min(len(which), start + step))
        columns = {name: c.take(which[part]) for name, c in states.columns.items()}
        pairs = index.pairs(columns, part.stop - start)
        yield part, pairs
        fit = CHUNK * (part.stop - start) // max(1, len(pairs.row))
        start, step = part.stop, max(1, min(8 * step, fit))


def _fit(ways: Ways, earned: Array) -> Array:  # [instances]
    """Return how well utilities fit what was earned, as normal densities; 0 elsewhere.

    And where a variable is always missing, how well it fits that it is.
    """
    trees = ways.trees
    means, variances = trees.utilities()
    fit = np.zeros(len(ways.position))
    here = np.flatnonzero(trees.kind[ways.position] == KINDS[Utility])
    mean = means[ways.position[here]]
    largest = float(np.abs(means).max(initial=0.0)) or 1.0
    rounded = OWN_ROUNDING * np.abs(mean) + ROUNDING * largest
    variance = np.maximum(variances[ways.position[here]] + rounded**2, 1e-300)
    fit[here] = -((earned[ways.pair[here]] - mean) ** 2) / (2 * variance) - np.log(variance) / 2
    if ways.missing.any():
        fit[ways.absent()] = ABSENT
    return fit
