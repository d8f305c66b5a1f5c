"""New data for an old structure: parameters anew from windows, and whether it still fits.

Windows add up. Those of a new batch are added to the old ones, and everything that is counted is
counted again; what was split and what was not stays as it is.
"""

from dataclasses import dataclass, field

import numpy as np

from rspmn.data.columns import Column
from rspmn.data.episodes import Episodes, Followed
from rspmn.data.windows import Windows
from rspmn.infer.compiled.assign import NOWHERE, SEVERAL, Placed, place
from rspmn.learn.config import LearnConfig
from rspmn.learn.flows import Flows, count_flows
from rspmn.learn.reestimate import rebuilt
from rspmn.learn.structure.independence import pair_statistics
from rspmn.learn.structure.rows import Rows, table_of, weigh
from rspmn.learn.successors import FutureInfo, Moves, factored
from rspmn.model import RSPMN
from rspmn.schema import Kind
from rspmn.types import Ints

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
    future: FutureInfo | None = None  # of factored futures

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


def refit(
    model: RSPMN, log: Windows | Episodes, config: LearnConfig | None = None
) -> tuple[RSPMN, RefitInfo]:
    """Estimate weights and utilities of a model anew, its structure and its leaves unchanged.

    From all of the log: to add a batch, add its windows to those learned from. Steps that the
    structure has no place for are left out and counted. Give it the configuration that the model
    was learned with: it says what weighs next states, which a model does not remember.

    >>> from rspmn.envs.frozen_lake import frozen_lake
    >>> from rspmn.learn import learn_rspmn
    >>> logs = [frozen_lake().generate(4000, 20, seed) for seed in (1, 2)]
    >>> one, two = map(Windows.from_episodes, logs)
    >>> model, info = learn_rspmn(one)
    >>> model, check = refit(model, one + two)
    >>> check.fits
    True
    """
    config = config or LearnConfig()
    windows = log if isinstance(log, Windows) else Windows.from_episodes(log)
    info = RefitInfo(steps=int(windows.counts.sum()))
    placed = place(model, windows)
    here, after = placed.here, placed.after
    flows, info.future = _flows(model, placed, windows, config)
    ended = windows.followed == Followed.END
    led = (windows.followed != Followed.UNKNOWN) & (after != SEVERAL)
    info.new_ends = int(windows.counts[ended & (after == NOWHERE)].sum())
    strange = (here == NOWHERE) | ((after == NOWHERE) & led & ~ended)
    info.new_states = int(windows.counts[strange].sum())
    had_way = np.zeros(len(windows), dtype=bool)
    had_way[placed.window] = True
    info.new_decisions = int(windows.counts[(here >= 0) & led & ~had_way].sum())
    several = (here == SEVERAL) | (after == SEVERAL)
    info.doubtful = int(windows.counts[several].sum())
    info.apart = _no_longer_alike(windows, placed.states.of_steps, here, after)
    return rebuilt(model, placed.trees, flows), info


def _flows(
    model: RSPMN, placed: Placed, windows: Windows, config: LearnConfig
) -> tuple[Flows, FutureInfo | None]:
    """Send every window with a known successor down its interface node; return what flowed."""
    found = count_flows(model, placed, windows, with_leaves=False)
    if config.future == "counts":
        return found, None
    led, info = factored_flows(model, placed, windows, config.bins)
    found.led |= led
    return found, info


def factored_flows(
    model: RSPMN, placed: Placed, windows: Windows, bins: int
) -> tuple[dict[int, dict[int, float]], FutureInfo]:
    """Return what followed at each site by counts and factors that sites share."""
    known = placed.chosen & (placed.after[placed.window] >= 0)
    window, instance = placed.window[known], placed.instance[known]
    position, site = np.unique(placed.instances.position[instance], return_inverse=True)
    future = factored(_moves(model, placed, windows, bins, window, site))
    led = future.successors
    found: dict[int, dict[int, float]] = {}
    steps = weigh(site, windows.counts[window].astype(np.float64))
    for k, at in enumerate(position.tolist()):
        part = slice(int(led.starts[k]), int(led.starts[k + 1]))
        flow = (led.weights[part] * steps[k]).tolist()
        found[at] = dict(zip(led.interfaces[part].tolist(), flow, strict=True))
    return found, future.info


def _moves(
    model: RSPMN, placed: Placed, windows: Windows, bins: int, window: Ints, site: Ints
) -> Moves:
    """Return what was logged at the sites; each state stands for itself."""
    counts = windows.counts.astype(np.float64)
    columns = {name: windows.columns[name] for name in model.schema.variables}
    known = windows.followed != Followed.UNKNOWN
    return Moves(
        model.schema,
        table_of(columns, np.where(known, counts, 0.0), bins, model.schema.decisions),
        placed.states,
        placed.of_states,
        np.zeros(model.num_interfaces, dtype=bool),
        model.end,
        int(site.max(initial=-1)) + 1,
        site,
        window,
        placed.after[window],
        counts[window],
    )


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
