"""LearnRSPMN (Sec. 4): from logged episodes to a sound template, in four steps.

Each step has a file of its own: `two_step` and `structure` (Step 1), `one_step` (Step 2),
`initial_template` (Step 3), `estimate` (Step 4), `em` (further passes of Step 4).
"""

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rspmn.behaviour import Behaviour
from rspmn.data.episodes import Episodes, Followed
from rspmn.data.windows import Windows
from rspmn.end_nodes import uniform_top
from rspmn.errors import DataError
from rspmn.learn.behaviour import learn_behaviour
from rspmn.learn.config import LearnConfig, Report, progress_bar
from rspmn.learn.em import em
from rspmn.learn.estimate import Estimated, estimate
from rspmn.learn.info import RSPMNInfo
from rspmn.learn.initial_template import InitialTemplate, initial_template
from rspmn.learn.irrelevant import irrelevant_variables
from rspmn.learn.missing.complete import completed, steps_lacking
from rspmn.learn.never_taken import never_taken
from rspmn.learn.one_step import OneStep, one_step_of
from rspmn.learn.set_aside import fitted_leaves, located_without, put_back, without_variables
from rspmn.learn.stages import Stages, tied_network
from rspmn.learn.structure.classes import is_number
from rspmn.learn.structure.learn_spmn import learn_rows
from rspmn.learn.structure.learner import SECONDS_PER_VALUE, Learner
from rspmn.learn.structure.rows import Rows, group_rows, table_of
from rspmn.learn.two_step import Grown, TwoSteps, grow_two_steps, two_step_network, wrap
from rspmn.model import RSPMN
from rspmn.types import Ints

if TYPE_CHECKING:
    from rspmn.data.sources.count_windows import StoredWindows

#: About the seconds that a node of the one-step network takes in Steps 2 to 4; Step 1 leaves them.
STEPS_2_TO_4 = 2e-5
#: About the seconds that a value of the log takes in factors of what follows.
FACTORS_PER_VALUE = 5e-7


def learn_rspmn(
    log: "Episodes | Windows | StoredWindows",
    config: LearnConfig | None = None,
    rng: np.random.Generator | int = 0,
    *,
    report: Report | None = None,
    progress: bool | None = None,
    keep_stages: bool = False,
) -> tuple[RSPMN, RSPMNInfo]:
    """Learn a recurrent sum-product-max network from a log.

    Parameters
    ----------
    log
        Episodes, or their windows, which are sufficient unless EM is used. If there are more than
        `config.max_windows` windows, stored in an engine (`rspmn.store_windows`), the structure is
        learned from a sample, and parameters are estimated from all windows in batches.
    config
        The settings; `LearnConfig()` by default.
    rng
        A random generator or a seed, for randomised tests and clusterings.
    report
        A progress callback, called with a `Progress`.
    progress
        Whether to show a progress bar; by default on a terminal and in notebooks.
    keep_stages
        Whether to keep the networks of each step in `info.stages`.

    Returns
    -------
    The model, and information about the learning process.

    Examples
    --------
    >>> from rspmn.envs.grid_universe import grid_universe
    >>> log = grid_universe().generate(episodes=2000, horizon=8, rng=0)
    >>> model, info = learn_rspmn(log)
    >>> model.meu(horizon=8) == 6  # five moves at -1, of which the last earns +10 instead
    True
    """
    config = config or LearnConfig()
    _check_arguments(log, config)
    with progress_bar(progress, report) as shown:
        return _learn(log, config, rng, shown, keep_stages)


def _learn(
    log: "Episodes | Windows | StoredWindows",
    config: LearnConfig,
    rng: np.random.Generator | int,
    report: Report | None,
    keep_stages: bool,
) -> tuple[RSPMN, RSPMNInfo]:
    """Learn in four steps."""
    if not isinstance(log, Episodes | Windows) and len(log) > config.max_windows:
        return _learn_large(log, config, rng, report, keep_stages)
    started, info, rng = time.monotonic(), RSPMNInfo(), np.random.default_rng(rng)
    with info.timing("windows"):
        windows = _windows(log, config)
        info.count_log(windows)
    em_deadline = config.deadline(started)
    config = config.reserving(SECONDS_PER_VALUE * len(windows) * len(windows.columns))
    if _are_single(windows, config):
        return _learn_single(windows, config, rng, report, info)
    with info.timing("relevance"):  # what does not matter is set aside
        whole = wrap(windows, config)
        found = irrelevant_variables(whole, config, config.deadline(started))
        info.aside, info.numbers, info.uncompared = found
    if info.numbers.grid:  # where numbers matter, interface nodes are soft boxes
        return _learn_soft(windows, config, info, started)
    narrow = replace(config, leaves={n: f for n, f in config.leaves.items() if n not in info.aside})
    with info.timing("missing values"):
        two, info.steps_completed = _complete(whole, [*info.aside], narrow, started)
    steps = _four_steps(two, narrow, rng, report, started, info)
    with info.timing("description"):
        here = steps.found.located.of_steps() if two is whole else None
        model = _described(steps.model, whole, here, info, config, started)
    if config.em_passes:
        assert isinstance(log, Episodes)
        with info.timing("em"):
            passes = config.em_passes
            model, info.em = em(model, log, passes, config.soft_em, deadline=em_deadline)
    info.sized("final", model.template)
    info.sized("top", model.top)
    if keep_stages:
        utility = two.primed.get(two.schema.utility)  # of the second step, if it is known
        info.keep(steps.stages(Learner(config, rng, two.rows, utility), model))
    return model, info


@dataclass(frozen=True, eq=False)
class _Steps:
    """What the four steps found."""

    two: TwoSteps
    grown: Grown  # Step 1
    one_step: OneStep  # Step 2
    template: InitialTemplate  # Step 3
    model: RSPMN  # Step 4
    found: Estimated

    def stages(self, learner: Learner, final: RSPMN) -> Stages:
        """Return the networks of all steps; the successors of Step 1 are learned for it."""
        return Stages(
            two_step_network(self.two, self.grown, learner), self.grown.network,
            uniform_top(final.num_interfaces), self.template.explicit(), final.template,
            tied_network(self.one_step, self.found),
        )  # fmt: skip


def _four_steps(
    two: TwoSteps, config: LearnConfig, rng: np.random.Generator, report: Report | None,
    started: float, info: RSPMNInfo,
) -> _Steps:  # fmt: skip
    """Learn from rows of two steps."""
    growing = _leaving_factors(config, two.windows, started)
    learner = Learner(growing, rng, two.rows, two.schema.utility, report, started, STEPS_2_TO_4)
    with info.timing("structure"):  # LearnSPMN; latents are in the place of the second step
        grown = grow_two_steps(two, learner)
    info.count_structure(learner, grown)
    with info.timing("interfaces"):  # the root interface nodes, and the states in each
        one_step = one_step_of(two, grown, config.clustering.disjoint)
    with info.timing("initial"):  # a uniform S_L beside every utility, and the edge of the log
        learner = Learner(config, rng, two.rows, two.schema.utility, started=started)
        template = initial_template(two, one_step, learner)
    with info.timing("estimate"):  # assign the log to the template, count, weigh S_L, rebuild
        known = template.located, two.table, config.deadline(started), template.beyond
        model, found = estimate(template, two.windows, config, *known)
    info.count(model, template, found)
    return _Steps(two, grown, one_step, template, model, found)


def _leaving_factors(config: LearnConfig, windows: Windows, started: float) -> LearnConfig:
    """Return settings for Step 1 that leave time for factors, up to half of what is left."""
    if config.successors != "factored":
        return config
    left = config.deadline(started) - time.monotonic()
    factors = FACTORS_PER_VALUE * len(windows) * len(windows.columns)
    return config.reserving(max(0.0, min(factors, left / 2)))


def _are_single(windows: Windows, config: LearnConfig) -> bool:
    """Tell whether steps are single decisions by numbers: no episode has a second step."""
    if config.numbers != "soft" or config.em_passes or (windows.followed != Followed.END).any():
        return False
    counts, decisions = windows.counts.astype(np.float64), windows.schema.decisions
    table = table_of(windows.columns, counts, config.bins, decisions)
    every = Rows(table, np.arange(len(windows)), counts)
    return any(is_number(every, name) for name in windows.schema.information_sets[0])


def _learn_single(
    windows: Windows, config: LearnConfig, rng: np.random.Generator, report: Report | None,
    info: RSPMNInfo,
) -> tuple[RSPMN, RSPMNInfo]:  # fmt: skip
    """Learn single decisions, as LearnSPMN does."""
    with info.timing("structure"):
        counts, decisions = windows.counts.astype(np.float64), windows.schema.decisions
        rows = group_rows(windows.columns, counts, config.bins, decisions)
        single, info.structure = learn_rows(rows, windows.schema, config, rng, report=report)
    model = single.as_recurrent
    info.count_soft(model, windows)
    return model, info


def _learn_soft(
    windows: Windows, config: LearnConfig, info: RSPMNInfo, started: float
) -> tuple[RSPMN, RSPMNInfo]:
    """Learn where numbers matter: interface nodes are soft boxes."""
    if config.em_passes:
        raise DataError(
            "em_passes: EM is not supported for soft boxes of numbers; learn without em_passes, or "
            'with numbers="intervals"'
        )
    from rspmn.learn.numbers.learn_on_grid import learn_on_grid

    with info.timing("numbers"):
        model = learn_on_grid(windows, config, info.numbers, config.deadline(started))
    with info.timing("description"):
        behaviour = _behaviour_in(windows, config, started)
        model = replace(model, behaviour=behaviour, last_end=windows.last_end)
    info.count_soft(model, windows)
    return model, info


def _complete(
    whole: TwoSteps, aside: list[str], config: LearnConfig, started: float
) -> tuple[TwoSteps, int]:
    """Return a log without what is set aside and lacking nothing that can be drawn.

    And the number of steps that values were drawn for.
    """
    narrow = without_variables(whole.windows, aside)
    drawn = completed(narrow, config.deadline(started))
    if drawn is whole.windows:
        return whole, 0
    return wrap(drawn, config), steps_lacking(narrow) if drawn is not narrow else 0


def _described(
    model: RSPMN, two: TwoSteps, here: Ints | None, info: RSPMNInfo, config: LearnConfig,
    started: float,
) -> RSPMN:  # fmt: skip
    """Return a model that describes whole steps, and says where decisions were never taken.

    Variables that were set aside are put back. `here` is the interface node of each step of the
    whole log; None if it was learned from other steps.
    """
    aside, nodes = tuple(info.aside), model.num_interfaces
    if here is None:
        here = located_without(model, two.windows, aside).of_steps()
    here = here[two.rows.origin]
    model = put_back(model, two.schema, fitted_leaves(two.rows, aside, here, nodes, config.leaves))
    never = never_taken(two.rows, two.schema, here, nodes)
    behaviour = _behaviour_in(two.windows, config, started)
    return replace(model, never_taken=never, behaviour=behaviour, last_end=two.windows.last_end)


def _behaviour_in(windows: Windows, config: LearnConfig, started: float) -> Behaviour:
    weights, deadline = windows.counts.astype(np.float64), config.deadline(started)
    return learn_behaviour(windows.columns, weights, windows.schema, deadline)


def _check_arguments(log: object, config: object) -> None:
    """Refuse a table where its windows are expected, and a schema where a config is."""
    if not isinstance(log, Episodes | Windows) and not _is_stored(log):
        raise DataError(
            f"expected Episodes or Windows, found {type(log).__name__}: for a table or a file, use "
            "rspmn.windows(log, schema, ...)"
        )
    if not isinstance(config, LearnConfig):
        raise DataError(
            f"expected a LearnConfig, found {type(config).__name__}: pass the schema with the log, "
            "rspmn.windows(log, schema, ...)"
        )
    if config.em_passes and not isinstance(log, Episodes):
        raise DataError("em_passes: expected Episodes, found Windows; EM needs whole sequences")


def _is_stored(log: object) -> bool:
    """Return whether an engine keeps windows; engines are not imported for any other log."""
    from rspmn.data.sources.count_windows import StoredWindows

    return isinstance(log, StoredWindows)


def _windows(log: "Episodes | Windows | StoredWindows", config: LearnConfig) -> Windows:
    """Return the windows of a log."""
    if isinstance(log, Episodes):
        windows = Windows.from_episodes(log, config.successor)
    else:
        windows = log if isinstance(log, Windows) else log.read()
    windows.schema.check_decides()
    return windows


def _learn_large(
    log: "StoredWindows",
    config: LearnConfig,
    rng: np.random.Generator | int,
    report: Report | None,
    keep_stages: bool,
) -> tuple[RSPMN, RSPMNInfo]:
    """Learn the structure from a sample of the windows, and the parameters from all of them."""
    from rspmn.learn.large_log import count_all, sample_of

    clock = time.monotonic()
    deadline = config.deadline(clock)
    seed = int(rng.integers(2**31)) if isinstance(rng, np.random.Generator) else int(rng)
    sample, sampled = sample_of(log, config.max_windows, seed)
    taken = time.monotonic() - clock
    model, info = _learn(sample, config.reserving(taken), rng, report, keep_stages)
    info.seconds["sample"] = taken
    with info.timing("count all"):
        if not (info.numbers.grid or model.overlaps):  # the sample is enough for a regression
            model = count_all(model, log, sample, config, sampled, deadline)
    info.sample, info.windows_used = sampled, None
    info.sized("final", model.template)
    return model, info
