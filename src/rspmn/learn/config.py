"""Settings of the learners: tests, clustering, transition weights and budgets; their progress."""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from rspmn.circuit import Distribution
from rspmn.errors import DataError, did_you_mean
from rspmn.learn.structure.independence import GTest, IndependenceTest
from rspmn.learn.structure.kmeans import KMeansClustering
from rspmn.learn.structure.leaves import Families
from rspmn.learn.structure.rdc import RDC
from rspmn.learn.structure.split import BehaviouralSplit, RowClustering

if TYPE_CHECKING:
    from rspmn.learn.successors.transitions import Successors


#: The fields that are words, and what they may be.
WORDS = {
    "numbers": ("soft", "intervals"),
    "successors": ("factored", "counts"),
    "successor": ("state", "tuple"),
}


@dataclass(frozen=True)
class LearnConfig:
    """Settings of the learners. `paper()` returns those of the paper.

    >>> LearnConfig(max_nodes=1000).max_nodes
    1000
    """

    independence: IndependenceTest = field(default_factory=GTest)
    clustering: RowClustering = field(default_factory=BehaviouralSplit)
    #: Test dependence on the future given the decisions in between, not over all rows.
    given_decisions: bool = True
    #: The significance level of tests for an effect on the mean utility.
    mean_alpha: float = 0.001
    #: A value must occur this often with each decision before it can be considered irrelevant.
    enough: float = 10.0
    #: Variables of the state that matter, whatever the log says; or "all".
    keep: Sequence[str] | Literal["all"] = ()
    #: Variables of the state that do not matter, whatever the logger did: its habits, for example.
    ignore: Sequence[str] = ()
    #: The number of soft classes of continuous contexts in a model of single decisions. 0: none,
    #: contexts are split into intervals; None: selected by held-out utilities.
    classes: int | None = None
    #: Whether to shrink the means of many actions towards each other, by empirical Bayes, in a
    #: model of single decisions: the best of many sample means is biased upwards.
    shrink: bool = True
    #: The interface nodes of continuous states: overlapping "soft" boxes, or "intervals".
    numbers: Literal["soft", "intervals"] = "soft"
    #: Numbers of many values are tested in this many bins of equal weight.
    bins: int = 10
    #: The estimator of transition weights: "factored", factors shared by branches and refined by
    #: counts; "counts", counts alone; or an object (see `rspmn.learn.Successors`).
    successors: "Successors | str" = "factored"
    #: Additional passes of EM over the sequences, and whether they are soft.
    em_passes: int = 0
    soft_em: bool = False
    #: The part of the successor to test: its state or, as in the paper, the whole next step.
    successor: Literal["state", "tuple"] = "state"
    #: The structure of a log with more distinct windows is learned from a sample of this many.
    max_windows: int = 500_000
    #: Families of leaves, by variable or kind: `{"temperature": Gaussian}`. Others are chosen by
    #: kind: `Categorical`, `IntegerHistogram` for integers of many values, `PiecewiseLinear`.
    leaves: Families = field(default_factory=dict, hash=False)
    #: Budgets; if one is reached, learning stops early with a valid network.
    max_nodes: int | None = None
    max_depth: int | None = None  # sums on a path
    max_seconds: float | None = None  # for all of learning

    def __post_init__(self) -> None:
        if self.max_windows < 1:
            raise DataError(
                f"LearnConfig: max_windows must be 1 or more, found {self.max_windows!r}"
            )
        for name in ("max_nodes", "max_depth", "max_seconds", "em_passes", "classes"):
            limit = getattr(self, name)
            if limit is not None and not limit >= 0:
                raise DataError(f"LearnConfig: {name} must be at least 0, found {limit!r}")
        for name, words in WORDS.items():
            given = getattr(self, name)
            if name == "successors" and not isinstance(given, str):
                if not callable(given):
                    raise DataError(
                        f"LearnConfig: successors must be one of {list(words)} or a function of "
                        f"transitions, found {given!r}"
                    )
            elif given not in words:
                raise DataError(f"LearnConfig: {name} {given!r}: {did_you_mean(given, words)}")
        for name in ("keep", "ignore"):
            names = getattr(self, name)
            if isinstance(names, str) and (name, names) != ("keep", "all"):
                raise DataError(f"LearnConfig: {name}: expected several names, found {names!r}")
        if both := {*self.keep} & {*self.ignore}:
            raise DataError(f"LearnConfig: {min(both)!r} is to be kept and to be ignored")
        for name, family in self.leaves.items():
            if not (isinstance(family, type) and issubclass(family, Distribution)):
                raise DataError(
                    f"LearnConfig: leaves: expected a class derived from Distribution for "
                    f"{name!r}, found {family!r}"
                )
        if self.bins < 2:
            raise DataError(f"LearnConfig: bins must be at least 2, found {self.bins!r}")

    @classmethod
    def paper(cls) -> "LearnConfig":
        """Learn as the paper's code does: RDC over all rows alike, and k-means with k = 2.

        RDC has an indicator for each value of a finite variable, and k-means takes raw numbers.
        """
        return cls(
            RDC(), KMeansClustering(), given_decisions=False, classes=0, shrink=False,
            successor="tuple",
            successors="counts", keep="all", numbers="intervals",
        )  # fmt: skip

    @classmethod
    def exact(cls) -> "LearnConfig":
        """Split everything that varies: the network is the empirical distribution."""
        return cls(
            GTest(alpha=1.0), BehaviouralSplit(alpha=1.0), classes=0, shrink=False,
            bins=2**31 - 1, successors="counts", keep="all", numbers="intervals",
        )  # fmt: skip

    def deadline(self, started: float) -> float:
        """Return the `time.monotonic()` at which the time budget is used up."""
        return math.inf if self.max_seconds is None else started + self.max_seconds

    def reserving(self, seconds: float) -> "LearnConfig":
        """Return these settings with a time budget that leaves so many seconds."""
        if self.max_seconds is None:
            return self
        return replace(self, max_seconds=max(0.0, self.max_seconds - seconds))

    @property
    def weighing(self) -> "Successors":
        """The estimator of transition weights, as an object."""
        from rspmn.learn.successors import Counts, Factored

        if isinstance(self.successors, str):
            return Counts() if self.successors == "counts" else Factored()
        return self.successors


@dataclass
class LearnInfo:
    """Information about the learning process."""

    rows: float = 0.0  # weight of all rows
    distinct_rows: int = 0
    nodes: int = 0
    edges: int = 0
    sums: int = 0
    tests: int = 0  # pairs of variables tested
    classes: int = 0  # soft classes of contexts; 0 if they were split
    seconds: float = 0.0
    stopped_by: str = ""  # the budget that ended learning early: nodes, depth or seconds


@dataclass(frozen=True)
class Progress:
    """The progress of learning."""

    rows_done: float
    rows: float
    nodes: int
    seconds: float


#: The progress callback.
Report = Callable[[Progress], None]


#: No bar is shown before so many seconds.
DELAY = 0.5


@contextmanager
def progress_bar(progress: bool | None, report: Report | None) -> Iterator[Report | None]:
    """Give the progress callback of a run of learning.

    `progress`: whether to show a bar; None: on a terminal and in notebooks. `report`: a callback of
    the caller's, which is called too.
    """
    if not (_has_viewer() if progress is None else progress):
        yield report
        return
    from tqdm import tqdm

    with tqdm(desc="learning", unit=" rows", unit_scale=True, leave=False, delay=DELAY) as bar:

        def both(found: Progress) -> None:
            bar.total = found.rows
            bar.set_postfix(nodes=found.nodes, refresh=False)
            bar.update(found.rows_done - bar.n)
            if report is not None:
                report(found)

        yield both


def _has_viewer() -> bool:
    """Tell whether somebody looks: at a terminal, or at a notebook."""
    return (sys.stderr is not None and sys.stderr.isatty()) or "ipykernel" in sys.modules


@dataclass(frozen=True)
class LatentTrees:
    """A mixture of latent trees for each group of dependent variables; see docs/density.md.

    >>> LatentTrees(trees=1).states
    32
    """

    #: The number of trees that are mixed.
    trees: int = 3
    #: The number of states of each hidden variable; fewer if there are few rows.
    states: int = 32
    #: Groups of variables are merged if G-tests between them, at this level, find a dependence.
    alpha: float = 0.01
    #: The share of rows that each tree is not estimated from: they tell when to stop.
    held_out: float = 0.1
    #: The strengths of smoothing, in rows, of which the held-out rows choose one.
    pseudo_rows: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0, 3.0)
    #: Families of leaves, by variable or kind, as in `LearnConfig`.
    leaves: Families = field(default_factory=dict, hash=False)
    #: No pass over the rows begins after so many seconds.
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("trees", "states"):
            if not getattr(self, name) >= 1:
                raise DataError(
                    f"LatentTrees: {name} must be 1 or more, found {getattr(self, name)!r}"
                )
        if not 0 < self.held_out < 1:
            raise DataError(
                f"LatentTrees: held_out must be between 0 and 1, found {self.held_out!r}"
            )
        if not self.pseudo_rows or not min(self.pseudo_rows) > 0:
            raise DataError(
                f"LatentTrees: pseudo_rows must be numbers above 0, found {self.pseudo_rows!r}"
            )
