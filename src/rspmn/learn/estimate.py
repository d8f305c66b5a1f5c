"""Step 4 (Alg. 6): assign the log to a template, count, weigh S_L, rebuild.

One mechanism for the first estimate, which starts from the initial template with its uniform S_L,
for `refit`, which starts from a model, and for logs that are counted batch by batch.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rspmn.circuit import Max, Utility
from rspmn.data.episodes import Followed
from rspmn.data.keys import group_weights
from rspmn.data.windows import Windows
from rspmn.end_nodes import Template
from rspmn.infer.compiled.assign import Assigned, Located, assign
from rspmn.infer.compiled.layers import KINDS
from rspmn.learn.config import LearnConfig
from rspmn.learn.flows import Flows, leaf_flows
from rspmn.learn.rebuild import rebuild
from rspmn.learn.structure.rows import RowTable, table_of
from rspmn.learn.successors.transitions import SuccessorWeights, Transitions
from rspmn.learn.successors.untried import untried_branches
from rspmn.model import RSPMN
from rspmn.types import Array, Ints
from rspmn.values import UNKNOWN


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a model was estimated from."""

    assigned: Assigned
    transitions: Transitions
    sites: Ints  # [sites of the transitions], their positions
    weights: SuccessorWeights
    info: object  # of the weighing

    def places(self, sites: Sequence[Ints]) -> Ints:
        """Return, given the windows behind some S_L, their numbers among the transitions."""
        of_window = np.full(len(self.assigned.here), -1)
        of_window[self.transitions.window] = self.transitions.site
        return np.array([of_window[windows].max(initial=-1) for windows in sites])


def estimate(
    template: Template,
    windows: Windows,
    config: LearnConfig,
    located: Located | None = None,
    table: RowTable | None = None,
    deadline: float = math.inf,
) -> tuple[RSPMN, Estimate]:
    """Return the model whose parameters fit a log best, given the structure of a template.

    Parameters
    ----------
    template
        An initial template, or a model.
    windows
        The log.
    config
        What weighs successors, and how numbers are binned for it.
    located
        The interface nodes of the log's states, where they are known already.
    table
        The windows as rows, where they were binned already.
    deadline
        The `time.monotonic()` at which the time budget is used up.
    """
    assigned = assign(template, windows, located)
    flows = count(template, assigned, windows)
    transitions, sites = transitions_of(template, assigned, windows, config, table)
    transitions = replace(transitions, deadline=deadline)
    weights, info = config.weighing(transitions)
    untried = template.untried if isinstance(template, RSPMN) else None
    if weights.factors is not None:
        occurred = windows.counts.astype(np.float64)
        untried = untried_branches(
            transitions, weights.factors, assigned.here, occurred, config.unavailable_from
        )
    model = rebuild(template, assigned.trees, flows.weighed(sites, weights), untried)
    return model, Estimate(assigned, transitions, sites, weights, info)


def count(template: Template, assigned: Assigned, windows: Windows) -> Flows:
    """Count the steps through every position; only those with a known successor."""
    trees, counts = assigned.trees, windows.counts.astype(np.float64)
    known = assigned.after >= 0
    steps = np.where(known, counts, 0.0)
    found = Flows.none(trees)
    found.passed = trees.shared(
        group_weights(assigned.passed, steps[assigned.passed_by], len(trees))
    )
    _count_utilities(found, assigned, windows, steps)
    reached = known[assigned.window]
    window, site = assigned.window[reached], assigned.site[reached]
    found.count_successors(site, assigned.after[window], counts[window])
    if assigned.leaves:
        found.leaves = leaf_flows(assigned, windows, steps)
    at = (assigned.here >= 0) & (assigned.here != frontier_of(template))
    size = len(trees.template.roots)
    found.starts = group_weights(assigned.here[at], windows.starts[at].astype(np.float64), size)
    found.visits = group_weights(assigned.here[at], counts[at], size)
    found.arrived = group_weights(assigned.after[known], counts[known], size)
    return found


def _count_utilities(found: Flows, assigned: Assigned, windows: Windows, steps: Array) -> None:
    earning = assigned.trees.kind[assigned.passed] == KINDS[Utility]
    here = np.flatnonzero(earning & (steps[assigned.passed_by] > 0))
    row, column = assigned.passed_by[here], windows.columns[windows.schema.utility]
    position = assigned.passed[here].astype(np.int64)
    within = None if column.spread is None else column.spread[row]
    found.count_utilities(position, column.data[row], steps[row], within)


def transitions_of(
    template: Template,
    assigned: Assigned,
    windows: Windows,
    config: LearnConfig,
    table: RowTable | None = None,
) -> tuple[Transitions, Ints]:
    """Return what was logged at each S_L that was reached, and their positions."""
    schema, counts = template.schema, windows.counts.astype(np.float64)
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
    )  # fmt: skip
    return found, positions


def frontier_of(template: Template) -> int | None:
    """Return the interface node of the states in which no decision is known, if there is one."""
    nodes = template.template.nodes
    for number, root in enumerate(template.template.roots):
        if number != template.unknown:
            decisions = [n for c in nodes[root].children if isinstance(n := nodes[c], Max)]
            if any(node.values == (UNKNOWN,) for node in decisions):
                return number
    return None
