"""LearnRSPMN (Sec. 4): from logged episodes to a sound template, in four steps.

Each step is a function of its own: `wrap` and `grow_spmn` (Step 1), `interface_nodes` (Step 2),
`initial_template` (Step 3), `route`, `factored` or `counts` and `final_model` (Step 4), `em`
(further passes).
"""

from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np

from rspmn.circuit import Latent, Network, walk_down
from rspmn.data.episodes import Episodes, Followed
from rspmn.data.sources.count_windows import StoredWindows
from rspmn.data.states import distinct_states
from rspmn.data.windows import Windows
from rspmn.errors import DataError
from rspmn.learn.config import LearnConfig, LearnInfo, Report
from rspmn.learn.em import EMInfo, em
from rspmn.learn.final_template import final_model
from rspmn.learn.frontier import Edge, edge_of
from rspmn.learn.initial_template import initial_template
from rspmn.learn.large_log import SampleInfo, count_all, sample_of
from rspmn.learn.numbering import Numbering, number_interfaces
from rspmn.learn.one_step import Interface, interface_nodes, state_network
from rspmn.learn.routing import Routes, route
from rspmn.learn.structure.after_decision import RecurrentOutcome
from rspmn.learn.structure.grow import grow_spmn
from rspmn.learn.structure.learner import Learner
from rspmn.learn.structure.rows import weigh
from rspmn.learn.successors import (
    FutureInfo,
    Moves,
    Successors,
    counts,
    factored,
    tied_network,
    untried_branches,
)
from rspmn.learn.successors.factors import Factors
from rspmn.learn.successors.transitions import at_sites
from rspmn.learn.two_step import two_step_network
from rspmn.learn.two_step_rows import TwoSteps, wrap
from rspmn.model import RSPMN
from rspmn.types import Bools, Ints


@dataclass(frozen=True)
class Stages:
    """The networks of each step, for figures and study."""

    two_step: Network  # Step 1; a successor's variable has a prime after its name
    one_step: Network  # Step 2; latent k marks the place of the k-th S_L
    initial: Network  # Step 3
    final: Network  # Step 4
    tied: Network | None = None  # Step 1 again, successors being products of tied factors


@dataclass
class RSPMNInfo:
    """What happened while learning."""

    windows: int = 0  # distinct
    steps: int = 0  # logged
    steps_unknown: int = 0  # of these, how many have no known successor
    steps_doubtful: int = 0  # of these, how many lead to one of several interface nodes
    steps_left_out: int = 0  # of the others, how many lack a variable that rows were divided by
    interfaces: int = 0  # root interface nodes that are states
    frontier_states: int = 0  # states in which no decision has a known successor
    frontier_visits: int = 0  # steps that led to one of them
    unsupported_branches: int = 0  # decisions of an interface node without a known successor
    untried_branches: int = 0  # decisions never made in an interface node, that have been elsewhere
    pruned_edges: int = 0  # of the initial template's S_L
    nodes: dict[str, int] = field(default_factory=dict)  # by stage
    edges: dict[str, int] = field(default_factory=dict)  # by stage
    seconds: dict[str, float] = field(default_factory=dict)  # by stage
    structure: LearnInfo = field(default_factory=LearnInfo)  # of LearnSPMN
    future: FutureInfo | None = None  # of factored futures
    em: EMInfo | None = None  # of further passes
    sample: SampleInfo | None = None  # if the structure was learned from a sample
    stages: Stages | None = None
    #: All that was learned from; add those of new episodes and pass both to `refit`.
    windows_used: Windows | None = None

    def timed(self, stage: str, since: float) -> float:
        """Write down what a stage took; return the time."""
        now = perf_counter()
        self.seconds[stage] = now - since
        return now

    def sized(self, stage: str, network: Network) -> None:
        """Write down how large a stage's network is."""
        self.nodes[stage], self.edges[stage] = len(network), network.num_edges


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
        Episodes, or their windows: all that is needed of them but for further passes of EM. They
        know their schema. Of windows that an engine keeps (`rspmn.store_windows`), if they are more
        than `config.max_windows`, the structure is learned from a sample; parameters are counted
        on all of them, batch by batch.
    config
        How to learn; `LearnConfig()` if not given.
    rng
        A generator or seed, for tests and clusterings that draw at random.
    report
        Is called with a `Progress` now and then.
    keep_stages
        Keep the networks of each step in `info.stages`, for figures and study.

    >>> from rspmn.envs.grid_universe import grid_universe
    >>> log = grid_universe().generate(episodes=2000, horizon=8, rng=0)
    >>> model, info = learn_rspmn(log)
    >>> model.meu(horizon=8) == 6  # five moves at -1, of which the last earns +10 instead
    True
    """
    config = config or LearnConfig()
    _check_arguments(log, config)
    if config.em_passes and not isinstance(log, Episodes):
        raise DataError("em_passes need the episodes: windows do not tell what came before")
    info = RSPMNInfo()
    clock = perf_counter()
    if isinstance(log, StoredWindows) and len(log) > config.max_windows:
        return _learn_large(log, config, rng, report, keep_stages)
    if isinstance(log, Episodes):
        windows = Windows.from_episodes(log, config.successor)
    else:
        windows = log if isinstance(log, Windows) else log.read()
    if not windows.schema.decisions:
        raise DataError("the schema has no decisions: there is nothing to decide, only to predict")
    info.timed("windows", clock)
    rng = np.random.default_rng(rng)
    found = _structure(windows, config, rng, report, info)
    doubtful = found.doubtful_successors()
    if doubtful.any() and config.clustering.disjoint:
        # Where a successor lacks values it may be in several interface nodes: it is not known.
        info.steps_doubtful = int(windows.counts[doubtful].sum())
        followed = np.where(doubtful, Followed.UNKNOWN, windows.followed).astype(np.int8)
        windows = replace(windows, followed=followed)
        found = _structure(windows, config, rng, report, info)
    two, one_step, interfaces = found.two, found.one_step, found.interfaces
    outcome, routes, learned_in = found.outcome, found.routes, found.learned_in
    clock = perf_counter()

    # Steps 3 and 4. An S_L everywhere, weighed by what followed; other edges do not exist.
    edge = edge_of(two, routes, learned_in, Learner(config, rng, two.rows, two.schema.utility))
    numbers = number_interfaces(two, routes, edge, len(interfaces))
    clock = info.timed("routing", clock)
    moves = _moves(found, numbers, config.clustering.disjoint)
    weights, factors = _weights(moves, config, info)
    clock = info.timed("future", clock)
    model = final_model(two, one_step, interfaces, routes, edge, numbers, weights, config.bins)
    if factors is not None:
        model = _with_hopes(model, found, moves, factors, config, info)
    clock = info.timed("template", clock)
    if config.em_passes:
        assert isinstance(log, Episodes)
        model, info.em = em(model, log, config.em_passes, config.soft_em)
        clock = info.timed("em", clock)

    info.sized("one step", one_step)
    info.sized("final", model.template)
    info.sized("top", model.top)
    info.pruned_edges = len(outcome.sites) * numbers.total - len(weights.interfaces)
    _count(info, windows, learned_in, edge, numbers)
    info.windows_used = windows
    if keep_stages:
        two_step = two_step_network(one_step, outcome.sites, two, config, rng)
        further = numbers.total - len(interfaces)
        initial = initial_template(one_step, interfaces, further)
        tied = None if factors is None else tied_network(one_step, moves, factors)
        info.stages = Stages(two_step, one_step, initial, model.template, tied)
        info.sized("two steps", two_step)
        info.sized("initial", initial)
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


def _learn_large(
    log: StoredWindows,
    config: LearnConfig,
    rng: np.random.Generator | int,
    report: Report | None,
    keep_stages: bool,
) -> tuple[RSPMN, RSPMNInfo]:
    """Learn the structure from a sample of the windows, and the parameters from all of them."""
    clock = perf_counter()
    seed = rng if isinstance(rng, int) else int(rng.integers(2**31))
    sample, sampled = sample_of(log, config.max_windows, seed)
    taken = perf_counter() - clock
    model, info = learn_rspmn(sample, config, rng, report=report, keep_stages=keep_stages)
    info.seconds["sample"], clock = taken, perf_counter()
    model = count_all(model, log, sample, config, sampled)
    info.timed("count all", clock)
    info.sample, info.windows_used = sampled, None
    info.sized("final", model.template)
    return model, info


def _weights(
    moves: Moves, config: LearnConfig, info: RSPMNInfo
) -> tuple[Successors, Factors | None]:
    """Weigh every S_L as the configuration says; by counts if there is no time left."""
    late = config.max_seconds is not None and sum(info.seconds.values()) >= config.max_seconds
    if config.future == "counts" or late:
        return counts(moves), None
    future = factored(moves)
    info.future = future.info
    return future.successors, future.factors


def _with_hopes(
    model: RSPMN, found: "_Structure", moves: Moves, factors: Factors, config: LearnConfig,
    info: RSPMNInfo,
) -> RSPMN:  # fmt: skip
    """Put decisions that were never tried beside the template, if there are any."""
    occurred = found.two.windows.counts.astype(np.float64)
    at = found.routes.of_steps
    untried = untried_branches(moves, factors, at, occurred, config.unavailable_from)
    if untried is None:
        return model
    info.untried_branches = untried.branches
    return replace(model, untried=untried)


@dataclass(frozen=True, eq=False)
class _Structure:
    """What Steps 1 and 2 give."""

    two: TwoSteps
    outcome: RecurrentOutcome
    one_step: Network
    interfaces: list[Interface]
    learned_in: Ints  # [num_windows], the interface node of each, -1 if none
    routes: Routes

    def doubtful_successors(self) -> Bools:  # [num_windows]
        """Say which windows have a successor that may be in several interface nodes."""
        after = self.routes.states.of_successors
        return (after >= 0) & self.routes.doubtful[after]


def _structure(
    windows: Windows,
    config: LearnConfig,
    rng: np.random.Generator,
    report: Report | None,
    info: RSPMNInfo,
) -> _Structure:
    clock = perf_counter()
    # Step 1. LearnSPMN on rows of two steps.
    two = wrap(windows, config.bins)
    learner = Learner(config, rng, two.rows, two.schema.utility, report)
    outcome = RecurrentOutcome(two.schema.utility, two.after)
    root = grow_spmn(learner, two.schema, two.rows, outcome)
    one_step = learner.builder.build(root)
    info.structure = replace(
        learner.info, nodes=len(one_step), edges=one_step.num_edges, seconds=learner.seconds()
    )
    clock = info.timed("structure", clock)
    # Step 2. Root interface nodes, and which of them each state is in.
    interfaces = interface_nodes(one_step)
    learned_in = _learned_in(one_step, interfaces, outcome.sites, len(windows))
    known = learned_in >= 0
    visits = weigh(learned_in[known], windows.counts[known].astype(np.float64), len(interfaces))
    routes = route(
        distinct_states(windows), learned_in, state_network(one_step, interfaces), visits,
        config.clustering.disjoint,
    )  # fmt: skip
    info.timed("interfaces", clock)
    return _Structure(two, outcome, one_step, interfaces, learned_in, routes)


def _moves(found: _Structure, numbers: Numbering, disjoint: bool) -> Moves:
    """Return what was logged at the place of each S_L."""
    two, states = found.two, found.routes.states
    site, window = at_sites(found.outcome.sites)
    boxes = np.zeros(numbers.total, dtype=bool)
    boxes[: numbers.learned] = disjoint
    return Moves(
        two.schema,
        two.table,
        states,
        numbers.of_states,
        boxes,
        numbers.end,
        len(found.outcome.sites),
        site,
        window,
        numbers.of_successors[window],
        two.windows.counts[window].astype(np.float64),
    )


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


def _count(
    info: RSPMNInfo, windows: Windows, learned_in: Ints, edge: Edge, numbers: Numbering
) -> None:
    """Write down what was learned from, and what lies at its edge."""
    unknown = windows.followed == Followed.UNKNOWN
    info.windows, info.steps = len(windows), int(windows.counts.sum())
    info.steps_unknown = int(windows.counts[unknown].sum())
    info.steps_left_out = int(windows.counts[(learned_in < 0) & ~unknown].sum())
    info.interfaces = numbers.learned + numbers.acted_in + (numbers.frontier is not None)
    info.frontier_states = len(edge.states) + len(edge.acted_in)
    first = numbers.learned
    last = numbers.frontier if numbers.frontier is not None else first + numbers.acted_in - 1
    led = (numbers.of_successors >= first) & (numbers.of_successors <= last)
    info.frontier_visits = int(windows.counts[led].sum())
    info.unsupported_branches = edge.branches
