"""New data for an old structure: Step 4 again, and whether the structure still fits.

Windows add up. Those of a new batch are added to the old ones, and everything that is counted is
counted again. The structure and the leaves stay as they are.
"""

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rspmn.data.columns import Column
from rspmn.data.episodes import Episodes, Followed
from rspmn.data.windows import Windows
from rspmn.errors import DataError
from rspmn.infer.compiled.assign import NOWHERE, SEVERAL, Assigned, Located, assign
from rspmn.learn.behaviour import learn_behaviour
from rspmn.learn.config import LearnConfig
from rspmn.learn.estimate import estimate, whole_steps
from rspmn.learn.missing.complete import completed
from rspmn.learn.numbers.relevant_numbers import continuous
from rspmn.learn.set_aside import located_without, put_back, take_out, without_variables
from rspmn.learn.structure.each_state import may_be_nodes
from rspmn.learn.structure.independence import pair_statistics
from rspmn.learn.structure.rows import Rows, table_of
from rspmn.learn.successors.unobserved_states import Beyond, beyond_in_model
from rspmn.learn.two_step import wrap
from rspmn.model import RSPMN
from rspmn.schema import Kind
from rspmn.types import Array, Bools, Ints

if TYPE_CHECKING:
    from rspmn.learn.numbers.axes import Axis

#: The probability that a structure that fits is reported not to.
ALPHA = 0.01


@dataclass
class RefitInfo:
    """What was re-estimated, and what the structure has no place for."""

    steps: int = 0  # all
    new_states: int = 0  # steps in, or to, a state of no interface node
    new_decisions: int = 0  # steps with decisions that were never made in their interface node
    new_ends: int = 0  # ends of episodes, if the model has no END
    doubtful: int = 0  # steps in, or to, a state that lacks values and may be in several nodes
    apart: list[int] = field(default_factory=list)  # nodes whose states no longer behave alike
    future: Any = None  # of the weighing of successors; a `FutureInfo` by default

    @property
    def fits(self) -> bool:
        """Whether every step has a place, and the states of each interface node behave alike."""
        return not self.reasons

    @property
    def reasons(self) -> list[str]:
        """Why the structure no longer fits; if it does not, learn again."""
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
    """Estimate the parameters of a model from a log; its structure and its leaves are kept.

    Parameters
    ----------
    model
        The model.
    log
        All of the data: to add a batch, add its windows to those that the model was learned from.
        Steps that do not fit the structure are left out and counted.
    config
        The configuration that the model was learned with; `LearnConfig()` by default. It determines
        the estimator of transition weights, which is not stored in a model.

    Returns
    -------
    The model, and information about steps that do not fit its structure.

    Examples
    --------
    >>> from rspmn.envs.frozen_lake import frozen_lake
    >>> from rspmn.learn import learn_rspmn
    >>> logs = [frozen_lake().generate(4000, 20, seed) for seed in (1, 2)]
    >>> one, two = map(Windows.from_episodes, logs)
    >>> model, info = learn_rspmn(one)
    >>> model, check = refit(model, one + two)
    >>> check.fits
    True
    """
    from rspmn.learn.numbers.axes import grid_of

    windows = log if isinstance(log, Windows) else Windows.from_episodes(log)
    grid, config = grid_of(model), config or LearnConfig()
    if grid is not None:
        kinds = model.schema.kinds
        windows = continuous(windows, [n for n in kinds if kinds[n] is Kind.CONTINUOUS])
        found, lacking = _refit_on_grid(model, windows, config, *grid)
        return _with_behaviour(found, windows, config), lacking
    narrow, leaves = take_out(model)
    log = completed(without_variables(windows, model.set_aside))
    located, beyond = _states_of(narrow, log, config)
    found, estimated = estimate(narrow, log, config, located, beyond=beyond)
    located = located_without(found, windows, model.set_aside)
    found = put_back(found, model.schema, leaves)
    info = _without_place(estimated.assigned, estimated.windows).info()
    apart = _no_longer_alike(windows, located, found)
    info = replace(info, apart=apart, future=estimated.info)
    return _with_behaviour(found, windows, config), info


def _with_behaviour(model: RSPMN, windows: Windows, config: LearnConfig) -> RSPMN:
    weights, deadline = windows.counts.astype(np.float64), config.deadline(time.monotonic())
    behaviour = learn_behaviour(windows.columns, weights, model.schema, deadline)
    return replace(model, behaviour=behaviour, last_end=windows.last_end)


@dataclass(frozen=True, eq=False)
class _WithoutPlace:
    """Which windows the structure has no place for; arrays are [num_windows]."""

    counts: Array  # the steps of each
    states: Bools  # in, or to, a state of no interface node
    decisions: Bools  # with decisions that are not in its interface node
    ends: Bools  # that ended, where the model knows no end
    doubtful: Bools  # in, or to, a state that may be in several nodes

    def info(self) -> RefitInfo:
        """Return how many steps there are of each kind."""
        return RefitInfo(
            steps=whole_steps(self.counts),
            new_states=whole_steps(self.counts[self.states]),
            new_decisions=whole_steps(self.counts[self.decisions]),
            new_ends=whole_steps(self.counts[self.ends]),
            doubtful=whole_steps(self.counts[self.doubtful]),
        )


def _without_place(assigned: Assigned, windows: Windows) -> _WithoutPlace:
    here, after, counts = assigned.here, assigned.after, windows.counts * assigned.share
    ended = windows.followed == Followed.END
    led = (windows.followed != Followed.UNKNOWN) & (after != SEVERAL) & ~windows.went_on
    reached = np.zeros(len(windows), dtype=bool)
    reached[assigned.window] = True
    return _WithoutPlace(
        counts,
        states=(here == NOWHERE) | ((after == NOWHERE) & led & ~ended),
        decisions=(here >= 0) & led & ~reached,
        ends=ended & (after == NOWHERE),
        doubtful=(here == SEVERAL) | (after == SEVERAL),
    )


def _states_of(
    model: RSPMN, log: Windows, config: LearnConfig
) -> tuple[Located | None, Beyond | None]:
    """Return states beyond the log, where they may be interface nodes, located with others."""
    if not (log.followed != Followed.UNKNOWN).any():
        return None, None
    two = wrap(log, config)
    if not model.beyond and not may_be_nodes(two.rows, two.schema, config):
        return None, None
    return beyond_in_model(model, two) or (None, None)


def _refit_on_grid(
    model: RSPMN,
    windows: Windows,
    config: LearnConfig,
    axes: "dict[tuple[str, ...], Axis]",
    categories: list[str],
) -> tuple[RSPMN, RefitInfo]:
    """Estimate what follows soft boxes from the steps that have a place in them.

    Numbers beyond the axes are new states, too, but are used as those at the ends.
    """
    from rspmn.learn.numbers.learn_on_grid import estimate_on_grid

    lacks = _without_place(assign(model.offering("all"), windows), windows)
    kept = np.flatnonzero(~(lacks.states | lacks.decisions | lacks.ends))
    beyond = lacks.states.copy()
    for names, axis in axes.items():
        for columns in (windows.columns, windows.next_columns):
            beyond |= axis.beyond(np.stack([columns[n].numbers() for n in names], axis=1))
    info = replace(lacks, states=beyond).info()
    if not len(kept):
        raise DataError(f"no step fits the model: {'; '.join(info.reasons)}: learn again")
    return estimate_on_grid(windows.take(kept), config, axes, categories), info


def _no_longer_alike(windows: Windows, located: Located, model: RSPMN) -> list[int]:
    """Return the interface nodes in which utility or successor depend on the state.

    Or on a variable that was set aside. Steps that may be in several interface nodes take no part:
    where they belong was found by what followed them.
    """
    here, after = located.of_steps(), located.of_successors(windows, model.end)
    known, schema = (after >= 0) & (here >= 0), windows.schema
    tested = {"state": _categories(located.states.of_steps)}
    tested |= {f"aside {k}": windows.columns[n] for k, n in enumerate(model.set_aside)}
    outcome = {"after": _categories(after), "utility": windows.columns[schema.utility]}
    made = {f"made {k}": windows.columns[name] for k, name in enumerate(schema.decisions)}
    counts = windows.counts.astype(np.float64)
    table = table_of(tested | outcome | made, np.where(known, counts, 0.0), bins=10)
    found = []
    order = np.flatnonzero(known)
    order = order[np.argsort(here[order], kind="stable")]
    nodes, first = np.unique(here[order], return_index=True)
    for node, index in zip(nodes.tolist(), np.split(order, first)[1:], strict=True):
        rows = Rows(table, index, counts[index])
        names = rows.varying([*tested])
        if names:
            strata = rows.joint_codes([*made])
            p = pair_statistics(rows, names, [*outcome], strata).p_values()
            if p.min() < ALPHA / (len(outcome) * len(tested) * len(nodes)):
                found.append(node)
    return found


def _categories(numbers: Ints) -> Column:
    distinct, codes = np.unique(numbers, return_inverse=True)
    return Column(Kind.CATEGORICAL, codes.astype(np.int32), tuple(distinct.tolist()))
