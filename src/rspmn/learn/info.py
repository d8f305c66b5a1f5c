"""What happened while learning a recurrent network."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rspmn.circuit import Network
from rspmn.data.cut_steps import CutSteps, cut_steps_that_differ
from rspmn.data.episodes import Followed
from rspmn.data.windows import Windows
from rspmn.infer.compiled.assign import SEVERAL
from rspmn.learn.config import LearnInfo
from rspmn.learn.em import EMInfo
from rspmn.learn.estimate import Estimated, whole_steps
from rspmn.learn.initial_template import InitialTemplate
from rspmn.learn.irrelevant import Reason
from rspmn.learn.numbers.relevant_numbers import NumbersInfo
from rspmn.learn.stages import Stages
from rspmn.learn.structure.learner import Learner
from rspmn.learn.two_step import Grown
from rspmn.model import RSPMN

if TYPE_CHECKING:
    from rspmn.learn.large_log import SampleInfo


@dataclass
class RSPMNInfo:
    """What happened while learning."""

    windows: int = 0  # distinct
    steps: int = 0  # logged
    steps_unknown: int = 0  # of these, those followed by nothing known, as the log was cut
    #: Steps after which the log was cut, if they earn more or less than others; not counted.
    cut: CutSteps | None = None
    lacking: dict[str, int] = field(default_factory=dict)  # steps that lack each variable, if any
    #: Steps that lack values, or lead to a state that does, for which values were drawn.
    steps_completed: int = 0
    #: Steps that lack values, or lead to a state that does, and count in several interface nodes.
    steps_shared: int = 0
    steps_left_out: int = 0  # steps that agree with no interface node: they are not counted
    steps_doubtful: int = 0  # steps of which it stays open where they led, as both ends lack values
    interfaces: int = 0  # interface nodes that are states: END and UNKNOWN are not counted
    frontier_states: int = 0  # states in which no decision has a known successor
    frontier_extrapolated: int = 0  # of them, those in which factors say what decisions would do
    frontier_visits: int = 0  # steps that led to one of them
    unsupported_branches: int = 0  # decisions of an interface node without a known successor
    untried_branches: int = 0  # decisions never made in an interface node by chance, extrapolated
    avoided_branches: int = 0  # those that the logger avoided; where states are numbers, all
    #: Why each state is an interface node, nothing being tested; "" if that is not so.
    each_state: str = ""
    beyond: int = (
        0  # of interface nodes, states that the log does not have, but that factors say may follow
    )
    all_beyond: bool | None = None  # whether these are all that may follow; None: not looked for
    cut_beyond: float = 0.0  # the share of what follows that was not examined: the least probable
    #: Decisions never tried that were left out: they would not be chosen, by a plan with what
    #: factors predict or, where that takes too much, by what they earn at once.
    never_best: int = 0
    #: Variables of the state that nothing depends on, and what they are: interface nodes do not
    #: differ by them.
    aside: dict[str, Reason] = field(default_factory=dict)
    #: Variables that decisions depend on, so that the log cannot say whether anything else does.
    uncompared: tuple[str, ...] = ()
    pruned_edges: int = 0  # of the initial template's S_L
    nodes: dict[str, int] = field(default_factory=dict)  # by stage
    edges: dict[str, int] = field(default_factory=dict)  # by stage
    seconds: dict[str, float] = field(default_factory=dict)  # by stage
    structure: LearnInfo = field(default_factory=LearnInfo)  # of LearnSPMN
    future: Any = None  # of the weighing of successors; a `FutureInfo` by default
    em: EMInfo | None = None  # of further passes
    sample: "SampleInfo | None" = None  # if the structure was learned from a sample
    numbers: NumbersInfo = field(default_factory=NumbersInfo)  # of states that are numbers
    stages: Stages | None = None
    #: All that was learned from. To `refit` with new episodes, add their windows to these.
    windows_used: Windows | None = None

    def __str__(self) -> str:
        from rspmn.learn.description import description

        return "\n".join(description(self))

    @property
    def habits(self) -> tuple[str, ...]:
        """Those of the variables set aside that the logger acted by."""
        return tuple(name for name, reason in self.aside.items() if reason is Reason.HABIT)

    @contextmanager
    def timing(self, stage: str) -> Iterator[None]:
        """Record the seconds that a stage takes."""
        began = time.monotonic()
        yield
        self.seconds[stage] = time.monotonic() - began

    def sized(self, stage: str, network: Network) -> None:
        """Record the size of a stage's network."""
        self.nodes[stage], self.edges[stage] = len(network), network.num_edges

    def count_log(self, windows: Windows) -> None:
        """Record what is learned from."""
        self.windows, self.windows_used = len(windows), windows
        self.steps = int(windows.counts.sum())
        columns = ((name, windows.columns[name]) for name in windows.schema.state_variables)
        lacking = {name: int(windows.counts[column.missing].sum()) for name, column in columns}
        self.lacking = {name: steps for name, steps in lacking.items() if steps}
        self.cut = cut_steps_that_differ(windows)

    def count_structure(self, learner: Learner, grown: Grown) -> None:
        """Record what was learned in Step 1."""
        network, self.each_state = grown.network, grown.each_state
        self.structure = replace(
            learner.info, nodes=len(network), edges=network.num_edges, seconds=learner.seconds()
        )
        self.sized("one step", network)

    def keep(self, stages: Stages) -> None:
        """Record the networks of all steps."""
        self.stages = stages
        self.sized("two steps", stages.two_step)
        self.sized("initial", stages.initial)

    def count_soft(self, model: RSPMN, windows: Windows) -> None:
        """Record what a model of soft boxes knows of its log."""
        self.steps_unknown = int(windows.counts[windows.followed == Followed.UNKNOWN].sum())
        self.interfaces = model.num_state_interfaces
        self._count_untried(model)
        self.sized("final", model.template)
        self.sized("top", model.top)

    def _count_untried(self, model: RSPMN) -> None:
        self.untried_branches = 0 if model.untried is None else model.untried.branches
        self.avoided_branches = 0 if model.avoided is None else model.avoided.branches

    def count(self, model: RSPMN, template: InitialTemplate, found: Estimated) -> None:
        """Record where the steps of the log are in a model, and what lies at its edge."""
        assigned, edge = found.assigned, template.edge
        counts = found.windows.counts * assigned.share
        known = found.windows.followed != Followed.UNKNOWN
        reached = np.zeros(len(known), dtype=bool)
        reached[assigned.window] = True
        self.steps_shared = whole_steps(counts[found.shared])
        self.steps_unknown = whole_steps(counts[~known])
        self.steps_left_out = whole_steps(counts[known & ~reached])
        self.steps_doubtful = whole_steps(counts[known & reached & (assigned.after == SEVERAL)])
        self.interfaces = model.num_state_interfaces
        self.frontier_states = len(edge.states) + len(edge.acted_in)
        at_edge = (assigned.after >= template.learned) & (assigned.after != template.end)
        self.frontier_visits = whole_steps(counts[at_edge])
        anywhere = template.uniform_sites(assigned.trees)
        never = len(anywhere) - int(np.isin(found.sites, anywhere).sum())
        self.unsupported_branches = edge.branches + never
        self._count_untried(model)
        self.pruned_edges = len(anywhere) * len(template.visits) - len(found.weights.interfaces)
        self.future = found.info
        if template.beyond is not None:
            beyond = template.beyond
            self.beyond, self.all_beyond = len(beyond), beyond.complete
            self.cut_beyond = beyond.cut
        if found.extrapolated is not None:
            alone, last = found.extrapolated.alone, template.learned + self.frontier_states
            at = np.array(() if alone is None else alone.at)
            self.frontier_extrapolated = int(((at >= template.learned) & (at < last)).sum())
            self.never_best = found.extrapolated.never_best
