"""Step 4 (Alg. 6): assign the log to a template, count, weigh S_L, rebuild.

One mechanism for the first estimate, which starts from the initial template with its uniform S_L,
for `refit`, which starts from a model, and for logs that are counted batch by batch.

The expectation is `assign` and `count`: the likeliest way of each step, and the steps through each
position of the template. The maximisation is the weighing of successors and `rebuild`.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from rspmn.circuit import Utility
from rspmn.data.episodes import Followed
from rspmn.data.keys import group_weights
from rspmn.data.windows import Windows, distinct_states
from rspmn.end_nodes import Template
from rspmn.infer.compiled.assign import (
    SEVERAL,
    Assigned,
    Located,
    assign,
    is_frontier,
    locate,
    locate_again,
)
from rspmn.infer.compiled.layers import KINDS
from rspmn.learn.config import LearnConfig
from rspmn.learn.flows import Flows, leaf_flows, ranges_of
from rspmn.learn.partial_steps import shares_of
from rspmn.learn.rebuild import rebuild
from rspmn.learn.structure.rows import RowTable, table_of
from rspmn.learn.successors.extrapolate import Extrapolated, extrapolate
from rspmn.learn.successors.transitions import SuccessorWeights, Transitions
from rspmn.learn.successors.unobserved_states import Beyond
from rspmn.learn.successors.untried import NO_BRANCHES, UntriedBranches, untried_branches
from rspmn.model import RSPMN
from rspmn.types import Array, Bools, Ints


@dataclass(frozen=True, eq=False)
class Estimated:
    """What a model was estimated from."""

    located: Located  # the states of the log
    windows: Windows  # the log; windows that may be in several interface nodes several times
    assigned: Assigned  # these windows
    transitions: Transitions
    sites: Ints  # [sites of the transitions], their positions
    weights: SuccessorWeights
    info: object  # of the weighing
    extrapolated: Extrapolated | None = None  # where states beyond the log are interface nodes

    @property
    def shared(self) -> Bools:  # [num_windows]
        """Which of the windows are shares: where they are was found by all that is known."""
        before, states = self.located.states.count, self.assigned.located.states
        return np.asarray((states.of_steps >= before) | (states.of_successors >= before))


def estimate(
    template: Template,
    windows: Windows,
    config: LearnConfig,
    located: Located | None = None,
    table: RowTable | None = None,
    deadline: float = math.inf,
    beyond: Beyond | None = None,
) -> tuple[RSPMN, Estimated]:
    """Return the model whose parameters fit a log best, given the structure of a template.

    `template`: an initial template, or a model. `config`: what weighs successors, and how numbers
    are binned for it. `located`: the interface nodes of the log's states, where they are known
    already. `table`: the windows as rows, where they were binned already. `deadline`: the
    `time.monotonic()` at which the time budget is used up. `beyond`: where each state is an
    interface node, states that the log does not have. They are `located`, too.
    """
    located = located or locate(template, distinct_states(windows))
    log, assigned = assign_shared(template, windows, located)
    table, windows = table if log is windows else None, log
    flows = count(template, assigned, windows)
    transitions, sites = transitions_of(template, assigned, windows, config, table, deadline)
    if beyond is not None:
        transitions = replace(transitions, ties=beyond.ties)
    weights, info = config.weighing(transitions)
    old = template if isinstance(template, RSPMN) else None
    untried, extrapolated = NO_BRANCHES if old is None else UntriedBranches.of(old), None
    if beyond is not None:
        episodes = max(1.0, float(windows.starts.sum()))
        steps = float(windows.counts.sum()) / episodes
        extrapolated = extrapolate(transitions, weights, beyond, steps)
        untried = extrapolated.untried
    elif weights.factors is not None:
        occurred = windows.counts * assigned.share
        untried = untried_branches(transitions, weights, assigned.here, occurred)
    alone = None if extrapolated is None else extrapolated.alone
    flows = flows.weighed(sites, weights)
    if weights.outcomes is not None:
        flows = flows.with_outcomes(assigned.trees, sites, weights.outcomes)
    more = located.node[located.states.count - len(beyond) :].tolist() if beyond else ()
    model = rebuild(template, assigned.trees, flows, untried, alone, more)
    return model, Estimated(
        located, windows, assigned, transitions, sites, weights, info, extrapolated
    )


def assign_shared(
    template: Template, windows: Windows, located: Located | None = None, leaves: bool = False
) -> tuple[Windows, Assigned]:
    """Assign a log to a template; steps that may be in several interface nodes are shared.

    Returns
    -------
    The windows, several times where they are shared, and where each is. What shares are estimated
    from depends on the log and on the structure of the template only, not on its parameters. So to
    estimate a model again from the same log changes nothing.
    """
    assigned = assign(template, windows, located, leaves)
    while (assigned.located.node == SEVERAL).any():
        certain = rebuild(template, assigned.trees, count(template, assigned, windows))
        located = locate_again(certain, assigned.located)
        if np.array_equal(located.node, assigned.located.node):
            found = shares_of(certain, assigned, windows)
            return found.windows, assign(
                template, found.windows, found.located, leaves, found.share
            )
        assigned = assign(template, windows, located, leaves)
    return windows, assigned


def count(template: Template, assigned: Assigned, windows: Windows) -> Flows:
    """Count the steps through every position; only those with a known successor."""
    trees, counts = assigned.trees, assigned.steps
    known = assigned.after >= 0
    steps = np.where(known, counts, 0.0)
    found = Flows.none(trees)
    found.passed = trees.shared(
        group_weights(assigned.passed, steps[assigned.passed_by], len(trees))
    )
    _count_utilities(found, assigned, windows, steps)
    reached = known[assigned.window]
    window, site = assigned.window[reached], assigned.site[reached]
    earned, within = _utilities(windows, window)
    found.count_outcomes(site, assigned.after[window], earned, counts[window], within)
    if assigned.leaves:
        found.leaves = leaf_flows(assigned, windows, steps)
    at = (assigned.here >= 0) & ~np.append(is_frontier(template), False)[assigned.here]
    size = len(trees.template.roots)
    earned = windows.columns[windows.schema.utility].data
    found.rewards = ranges_of(earned, windows.followed == Followed.END)
    found.starts = group_weights(assigned.here[at], (windows.starts * assigned.share)[at], size)
    found.visits = group_weights(assigned.here[at], (windows.counts * assigned.share)[at], size)
    found.arrived = group_weights(assigned.after[known], counts[known], size)
    return found


def _count_utilities(found: Flows, assigned: Assigned, windows: Windows, steps: Array) -> None:
    earning = assigned.trees.kind[assigned.passed] == KINDS[Utility]
    here = np.flatnonzero(earning & (steps[assigned.passed_by] > 0))
    row, position = (part[here].astype(np.int64) for part in (assigned.passed_by, assigned.passed))
    earned, within = _utilities(windows, row)
    found.count_utilities(position, earned, steps[row], within)


def _utilities(windows: Windows, row: Ints) -> tuple[Array, Array | None]:
    """Return the utility of some windows, and its variance among the steps of each."""
    column = windows.columns[windows.schema.utility]
    return column.data[row], None if column.spread is None else column.spread[row]


def transitions_of(
    template: Template,
    assigned: Assigned,
    windows: Windows,
    config: LearnConfig,
    table: RowTable | None = None,
    deadline: float = math.inf,
) -> tuple[Transitions, Ints]:
    """Return what was logged at each S_L that was reached, and their positions."""
    schema, counts = template.schema, assigned.steps
    known = assigned.after[assigned.window] >= 0
    window = assigned.window[known]
    positions, site = np.unique(assigned.site[known], return_inverse=True)
    if table is None:
        columns = {name: windows.columns[name] for name in schema.variables}
        followed = np.where(windows.followed != Followed.UNKNOWN, counts, 0.0)
        table = table_of(columns, followed, config.bins, schema.decisions)
    boxes = np.zeros(len(template.template.roots), dtype=bool)
    boxes[assigned.here[window]] = config.clustering.disjoint
    found = Transitions(
        schema, table, assigned.located.states, assigned.located.node, boxes, template.end,
        len(positions), site, window, assigned.after[window], counts[window],
        assigned.share[window], deadline,
    )  # fmt: skip
    return found, positions


def whole_steps(steps: Array) -> int:
    """Return a number of steps, of which some are shares."""
    return round(float(steps.sum()))
