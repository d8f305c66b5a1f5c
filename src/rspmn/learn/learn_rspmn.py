"""LearnRSPMN (Sec. 4): from logged episodes to a sound template, in four steps."""

from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from rspmn.circuit import Network, walk_down
from rspmn.data.episodes import Episodes
from rspmn.data.windows import Windows
from rspmn.learn.config import LearnConfig, LearnInfo, Report
from rspmn.learn.final_template import final_model, number_interfaces
from rspmn.learn.frontier import edge_of
from rspmn.learn.future import counts
from rspmn.learn.grow_spmn import grow_spmn
from rspmn.learn.interfaces import Interface, interface_nodes, state_network
from rspmn.learn.learner import Learner
from rspmn.learn.outcome import Outcome
from rspmn.learn.routing import distinct_states, route
from rspmn.learn.rows import weigh
from rspmn.learn.wrap import wrap
from rspmn.model import RSPMN

__all__ = ["RSPMNInfo", "Stages", "learn_rspmn"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Stages:
    """The networks of each step, for figures and study."""

    two_step: Network  # Step 1
    one_step: Network  # Step 2; latent k marks the place of the k-th S_L
    initial: Network  # Step 3
    final: Network  # Step 4


@dataclass
class RSPMNInfo:
    """What happened while learning."""

    windows: int = 0  # distinct
    steps: int = 0  # logged
    steps_unknown: int = 0  # of these, how many have no known successor
    steps_left_out: int = 0  # of the others, how many lack a variable that rows were divided by
    interfaces: int = 0  # root interface nodes, END and the like included
    frontier_states: int = 0  # seen as successors only
    frontier_visits: int = 0  # steps that led there
    unsupported_branches: int = 0  # decisions of an interface node without a known successor
    nodes: dict[str, int] = field(default_factory=dict)  # by stage
    edges: dict[str, int] = field(default_factory=dict)  # by stage
    pruned_edges: int = 0  # of the initial template's S_L
    seconds: dict[str, float] = field(default_factory=dict)  # by stage
    structure: LearnInfo = field(default_factory=LearnInfo)  # of LearnSPMN
    stages: Stages | None = None

    def timed(self, stage: str, since: float) -> float:
        """Write down what a stage took; return the time."""
        now = perf_counter()
        self.seconds[stage] = now - since
        return now

    def sized(self, stage: str, network: Network) -> None:
        """Write down how large a stage's network is."""
        self.nodes[stage], self.edges[stage] = len(network), network.num_edges


def learn_rspmn(
    log: Episodes | Windows,
    config: LearnConfig | None = None,
    rng: np.random.Generator | int = 0,
    *,
    report: Report | None = None,
) -> tuple[RSPMN, RSPMNInfo]:
    """Learn a recurrent sum-product-max network from a log.

    Parameters
    ----------
    log
        Episodes, or their windows: all that is needed of them.
    config
        How to learn; `LearnConfig()` if not given.
    rng
        A generator or seed, for tests and clusterings that draw at random.
    report
        Is called with a `Progress` now and then.
    """
    config = config or LearnConfig()
    info = RSPMNInfo()
    clock = perf_counter()
    windows = log if isinstance(log, Windows) else Windows.from_episodes(log)
    clock = info.timed("windows", clock)

    # Step 1. LearnSPMN on rows of two steps.
    two = wrap(windows, config.bins)
    learner = Learner(config, np.random.default_rng(rng), two.rows, two.schema.utility, report)
    outcome = Outcome(two.schema.utility, two.after)
    root = grow_spmn(learner, two.schema, two.rows, outcome)
    one_step = learner.builder.build(root)
    info.sized("one step", one_step)
    clock = info.timed("structure", clock)

    # Step 2. Root interface nodes.
    interfaces = interface_nodes(one_step)
    learned_in = _learned_in(one_step, interfaces, outcome.sites, len(windows))
    clock = info.timed("interfaces", clock)

    # Steps 3 and 4. S_L everywhere, weighed by counts; what has none is pruned.
    visits = weigh(learned_in[learned_in >= 0], windows.counts[learned_in >= 0].astype(np.float64))
    states = distinct_states(windows)
    disjoint = config.clustering.disjoint
    routes = route(states, learned_in, state_network(one_step, interfaces), visits, disjoint)
    edge_learner = Learner(config, learner.rng, two.rows, two.schema.utility)
    edge = edge_of(two, routes, learned_in, edge_learner)
    numbers = number_interfaces(two, routes, edge, len(interfaces))
    clock = info.timed("routing", clock)
    weights = counts(
        outcome.sites, numbers.of_successors, windows.counts.astype(np.float64), numbers.total
    )
    model = final_model(two, one_step, interfaces, routes, edge, numbers, weights, config.bins)
    info.timed("template", clock)
    return model, info


def _learned_in(
    one_step: Network, interfaces: list[Interface], sites: list[Ints], windows: int
) -> Ints:
    """Return the interface node that each window was learned in, -1 if none."""
    of_site = np.full(len(sites), -1)
    starts = {child: number for number, children in enumerate(interfaces) for child in children}
    reached = walk_down(
        one_step, starts, lambda _, node, arrived: [(c, arrived[0]) for c in node.children]
    )
    for index, found in reached.items():
        node = one_step.nodes[index]
        if hasattr(node, "interface"):
            of_site[node.interface] = found[0]
    learned = np.full(windows, -1)
    learned[np.concatenate(sites)] = np.repeat(of_site, [len(site) for site in sites])
    return learned
