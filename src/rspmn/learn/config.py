"""How to learn: the tests, the clustering, the weighing of successors, and the budgets."""

import math
import warnings
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
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

#: The weighings of successors that have a name.
WEIGHINGS = "factored", "counts"
#: What says which decisions a state offers.
AVAILABILITIES = "declared", "observed"


@dataclass(frozen=True)
class LearnConfig:
    """How to learn. The default is ours; `paper()` is the paper's.

    >>> LearnConfig(max_nodes=1000).max_nodes
    1000
    """

    independence: IndependenceTest = field(default_factory=GTest)
    clustering: RowClustering = field(default_factory=BehaviouralSplit)
    #: Test what follows given the decisions in between, not over all rows alike.
    given_decisions: bool = True
    #: The level at which a variable is found to change the mean of the utility.
    mean_alpha: float = 0.001
    #: Which decisions a state offers. "declared": what was taken anywhere in its interface node,
    #: unless the schema says that it is unavailable. "observed": what was taken in it; states with
    #: different decisions are different. That takes a habit of the logger for a law.
    availability: Literal["declared", "observed"] = "declared"
    #: A decision never seen where at least this many were expected is reported and, if availability
    #: is observed, unavailable there.
    unavailable_from: float = 10.0
    #: A value must be seen this often with each decision before it can be called irrelevant.
    enough: float = 10.0
    #: How many soft classes divide contexts of numbers in a model of single decisions. 0: none,
    #: contexts are split into intervals; None: chosen by how well utilities are predicted.
    classes: int | None = None
    #: Shrink the means of many values of a decision towards each other, by empirical Bayes, in a
    #: model of single decisions: the best of many plain means is too high.
    shrink: bool = True
    #: What interface nodes are where numbers matter: "soft" boxes that overlap, or "intervals".
    numbers: Literal["soft", "intervals"] = "soft"
    #: Numbers of many values are tested in this many bins of equal weight.
    bins: int = 10
    #: What weighs the successors of a branch: "factored", factors that branches share, refined by
    #: counts; "counts", counts alone; or an object of your own (see `rspmn.learn.Successors`).
    successors: "Successors | str" = "factored"
    #: Passes of EM over the sequences after the first, and whether they are soft.
    em_passes: int = 0
    soft_em: bool = False
    #: The part of the successor that is tested: its state or, as in the paper, the whole next step.
    successor: Literal["state", "tuple"] = "state"
    #: The structure of a log with more distinct windows is learned from a sample of this many.
    max_windows: int = 500_000
    #: Families of leaves, by variable or kind: `{"temperature": Gaussian}`. Others are chosen by
    #: kind: `Categorical`, `IntegerHistogram` for integers of many values, `PiecewiseLinear`.
    leaves: Families = field(default_factory=dict, hash=False)
    #: Budgets; learning that reaches one ends early with a valid network.
    max_nodes: int | None = None
    max_depth: int | None = None  # sums on a path
    max_seconds: float | None = None  # for all of learning
    #: The former name of `successors`.
    future: InitVar[str | None] = None

    def __post_init__(self, future: str | None) -> None:
        if future is not None:
            warnings.warn(
                "LearnConfig(future=...) is now LearnConfig(successors=...)", DeprecationWarning, 3
            )
            object.__setattr__(self, "successors", future)
        if self.max_windows < 1:
            raise DataError(
                f"LearnConfig: max_windows must be 1 or more, found {self.max_windows!r}"
            )
        for name in ("max_nodes", "max_depth", "max_seconds", "em_passes", "classes"):
            limit = getattr(self, name)
            if limit is not None and not limit >= 0:
                raise DataError(f"LearnConfig: {name} must be at least 0, found {limit!r}")
        if isinstance(self.successors, str) and self.successors not in WEIGHINGS:
            raise DataError(
                f"LearnConfig: successors {self.successors!r}: "
                f"{did_you_mean(self.successors, WEIGHINGS)}"
            )
        if not isinstance(self.successors, str) and not callable(self.successors):
            raise DataError(
                f"LearnConfig: successors must be one of {list(WEIGHINGS)} or a function of "
                f"transitions, found {self.successors!r}"
            )
        if self.availability not in AVAILABILITIES:
            raise DataError(
                f"LearnConfig: availability {self.availability!r}: "
                f"{did_you_mean(self.availability, AVAILABILITIES)}"
            )
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
        """Learn as the paper's code does: RDC over all rows alike, and k-means with k = 2."""
        return cls(
            RDC(), KMeansClustering(), given_decisions=False, classes=0, shrink=False,
            successor="tuple",
            successors="counts", availability="observed", numbers="intervals",
        )  # fmt: skip

    @classmethod
    def exact(cls) -> "LearnConfig":
        """Split everything that varies: the network is the empirical distribution."""
        return cls(
            GTest(alpha=1.0), BehaviouralSplit(alpha=1.0), classes=0, shrink=False,
            bins=2**31 - 1,
            successors="counts", availability="observed", numbers="intervals",
        )  # fmt: skip

    def deadline(self, started: float) -> float:
        """Return the `time.monotonic()` at which the time budget is used up."""
        return math.inf if self.max_seconds is None else started + self.max_seconds

    @property
    def weighing(self) -> "Successors":
        """What weighs successors, as an object."""
        from rspmn.learn.successors import Counts, Factored

        if isinstance(self.successors, str):
            return Counts() if self.successors == "counts" else Factored()
        return self.successors


@dataclass
class LearnInfo:
    """What happened while learning."""

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
    """How far learning has come."""

    rows_done: float
    rows: float
    nodes: int
    seconds: float


#: The progress callback.
Report = Callable[[Progress], None]
