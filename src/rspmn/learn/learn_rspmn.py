"""LearnRSPMN (Sec. 4): from logged episodes to a sound template, in four steps.

Each step has a file of its own: `two_step` and `structure` (Step 1), `one_step` (Step 2),
`initial_template` (Step 3), `estimate` (Step 4), `em` (further passes of Step 4).
"""

import math
import time
from dataclasses import replace

import numpy as np

from rspmn.circuit import Latent, Network, walk_down
from rspmn.data.episodes import Episodes
from rspmn.data.keys import group_weights
from rspmn.data.sources.count_windows import StoredWindows
from rspmn.data.windows import Windows, distinct_states
from rspmn.errors import DataError
from rspmn.infer.compiled.assign import NOWHERE, Located, likeliest_roots
from rspmn.infer.compiled.state_index import state_part
from rspmn.learn.config import LearnConfig, Report
from rspmn.learn.em import em
from rspmn.learn.estimate import Estimate, estimate
from rspmn.learn.frontier import edge_of
from rspmn.learn.info import RSPMNInfo
from rspmn.learn.initial_template import InitialTemplate, initial_template, locate_in
from rspmn.learn.large_log import count_all, sample_of
from rspmn.learn.one_step import Interface, interface_nodes
from rspmn.learn.stages import Stages, tied_network
from rspmn.learn.structure.after_decision import RecurrentOutcome
from rspmn.learn.structure.grow import grow_spmn
from rspmn.learn.structure.learner import Learner
from rspmn.learn.two_step import TwoSteps, two_step_network, wrap
from rspmn.model import RSPMN
from rspmn.types import Array, Ints

#: About the seconds that a node of the one-step network takes in Steps 2 to 4; Step 1 leaves them.
STEPS_2_TO_4 = 1e-4


def learn_rspmn(
    log: Episodes | Windows | StoredWindows,
    config: LearnConfig | None = None,
    rng: np.random.Generator | int = 0,
    *,
    report: Report | None = None,
    keep_stages: bool = False,
) -> tuple[RSPMN, RSPMNInfo]:
    """Learn a recurrent sum-product-max network from a log.

    Parameters
    ----------
    log
        Episodes, or their windows: all that is needed of them, except for further passes of EM.
        They know their schema. If there are more windows than `config.max_windows`, kept by an
        engine (`rspmn.store_windows`), the structure is learned from a sample. Parameters are
        estimated from all of them, batch by batch.
    config
        How to learn; `LearnConfig()` by default.
    rng
        A generator or seed, for tests and clusterings that draw at random.
    report
        The progress callback; it is called with a `Progress`.
    keep_stages
        Keep the networks of each step in `info.stages`, for figures and study.

    Returns
    -------
    The model, and what happened while learning.

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
    if isinstance(log, StoredWindows) and len(log) > config.max_windows:
        return _learn_large(log, config, rng, report, keep_stages)
    started, info, rng = time.monotonic(), RSPMNInfo(), np.random.default_rng(rng)
    windows = _windows(log, config)
    clock = info.timed("windows", started)

    # Step 1: LearnSPMN on rows of two steps. A latent marks the place of the second step.
    two = wrap(windows, config)
    learner = Learner(config, rng, two.rows, two.schema.utility, report, started, STEPS_2_TO_4)
    outcome = RecurrentOutcome(two.schema.utility, two.after)
    one_step = learner.builder.build(grow_spmn(learner, two.schema, two.rows, outcome))
    info.structure = replace(
        learner.info, nodes=len(one_step), edges=one_step.num_edges, seconds=learner.seconds()
    )
    clock = info.timed("structure", clock)

    # Step 2: the root interface nodes, and the states in each.
    interfaces = interface_nodes(one_step)
    learned_in = _learned_in(one_step, interfaces, outcome.sites, len(windows))
    steps, located = _locate(two, one_step, interfaces, learned_in, config)
    clock = info.timed("interfaces", clock)

    # Step 3: a uniform S_L beside every utility; roots for what lies at the edge of the log.
    learner = Learner(config, rng, two.rows, two.schema.utility, started=started)
    edge = edge_of(two, located, learned_in >= 0, learner)
    template = initial_template(two, one_step, interfaces, steps, located, edge, config.bins)
    located = locate_in(template, located, edge)
    clock = info.timed("initial", clock)

    # Step 4: assign the log to the template, count, weigh S_L, rebuild.
    deadline = math.inf if config.max_seconds is None else started + config.max_seconds
    model, found = estimate(template, windows, config, located, two.table, deadline)
    clock = info.timed("estimate", clock)
    if config.em_passes:
        assert isinstance(log, Episodes)
        model, info.em = em(model, log, config.em_passes, config.soft_em, deadline=deadline)
        info.timed("em", clock)

    info.count(model, windows, template, edge, found)
    info.sized("one step", one_step)
    if keep_stages:
        info.stages = _stages(two, one_step, outcome.sites, template, model, found, config, rng)
        info.sized("two steps", info.stages.two_step)
        info.sized("initial", info.stages.initial)
    return model, info


def _check_arguments(log: object, config: object) -> None:
    """Refuse a table where its windows are expected, and a schema where a config is."""
    if not isinstance(log, Episodes | Windows | StoredWindows):
        raise DataError(
            f"expected Episodes or Windows, found {type(log).__name__}: of a table or a file, "
            "rspmn.windows(log, schema, ...) makes them"
        )
    if not isinstance(config, LearnConfig):
        raise DataError(
            f"expected a LearnConfig, found {type(config).__name__}: the schema goes with the log, "
            "rspmn.windows(log, schema, ...)"
        )
    if config.em_passes and not isinstance(log, Episodes):
        raise DataError("em_passes need the episodes: windows do not tell what came before")


def _windows(log: Episodes | Windows | StoredWindows, config: LearnConfig) -> Windows:
    """Return the windows of a log."""
    if isinstance(log, Episodes):
        windows = Windows.from_episodes(log, config.successor)
    else:
        windows = log if isinstance(log, Windows) else log.read()
    if not windows.schema.decisions:
        raise DataError("the schema has no decisions: there is nothing to decide, only to predict")
    return windows


def _learn_large(
    log: StoredWindows,
    config: LearnConfig,
    rng: np.random.Generator | int,
    report: Report | None,
    keep_stages: bool,
) -> tuple[RSPMN, RSPMNInfo]:
    """Learn the structure from a sample of the windows, and the parameters from all of them."""
    clock = time.monotonic()
    seed = int(rng.integers(2**31)) if isinstance(rng, np.random.Generator) else int(rng)
    sample, sampled = sample_of(log, config.max_windows, seed)
    taken = time.monotonic() - clock
    if config.max_seconds is not None:
        config = replace(config, max_seconds=max(0.0, config.max_seconds - taken))
    model, info = learn_rspmn(sample, config, rng, report=report, keep_stages=keep_stages)
    info.seconds["sample"], clock = taken, time.monotonic()
    model = count_all(model, log, sample, config, sampled)
    info.timed("count all", clock)
    info.sample, info.windows_used = sampled, None
    info.sized("final", model.template)
    return model, info


def _learned_in(
    one_step: Network, interfaces: list[Interface], sites: list[Ints], windows: int
) -> Ints:
    """Return the interface node that each window was learned in, -1 if none."""
    starts = {child: number for number, children in enumerate(interfaces) for child in children}
    reached = walk_down(
        one_step, starts, lambda _, node, arrived: [(c, arrived[0]) for c in node.children]
    )
    of_site = np.full(len(sites), -1)
    for index, found in reached.items():
        node = one_step.nodes[index]
        if isinstance(node, Latent):
            of_site[node.interface] = found[0]
    learned = np.full(windows, -1)
    learned[np.concatenate(sites)] = np.repeat(of_site, [len(site) for site in sites])
    return learned


def _locate(
    two: TwoSteps,
    one_step: Network,
    interfaces: list[Interface],
    learned_in: Ints,
    config: LearnConfig,
) -> tuple[Array, Located]:
    """Return the steps that each interface node was learned from, and the states in each.

    Where rows were divided by values, a state that was learned from is excluded by all interface
    nodes but its own. Other states are in the likeliest.
    """
    states, counts = distinct_states(two.windows), two.windows.counts.astype(np.float64)
    known = learned_in >= 0
    steps = group_weights(learned_in[known], counts[known], len(interfaces))
    node = np.full(states.count, NOWHERE)
    if config.clustering.disjoint:
        node[states.of_steps[known]] = learned_in[known]
    others = np.flatnonzero(node == NOWHERE)
    if len(others):
        network = state_part(one_step, interfaces)
        node[others] = likeliest_roots(network, states, others, steps)
    return steps, Located(states, node)


def _stages(
    two: TwoSteps,
    one_step: Network,
    sites: list[Ints],
    template: InitialTemplate,
    model: RSPMN,
    found: Estimate,
    config: LearnConfig,
    rng: np.random.Generator,
) -> Stages:
    """Return the networks of each step."""
    two_step = two_step_network(one_step, sites, two, config, rng)
    tied = None
    if found.weights.factors is not None:
        tied = tied_network(one_step, found.places(sites), found.transitions, found.weights.factors)
    return Stages(two_step, one_step, template.explicit(), model.template, tied)
