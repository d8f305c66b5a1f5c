"""Settings of the learners: tests, clustering, transition weights and budgets; their progress."""

import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import numpy as np

from rspmn.circuit import Distribution
from rspmn.errors import DataError
from rspmn.learn.structure.independence import GTest, IndependenceTest
from rspmn.learn.structure.kmeans import KMeansClustering
from rspmn.learn.structure.leaves import Families
from rspmn.learn.structure.rdc import RDC
from rspmn.learn.structure.split import BehaviouralSplit, RowClustering
from rspmn.values import FLOATS, is_number

if TYPE_CHECKING:
    from rspmn.learn.successors.transitions import Successors


#: What is expected of a setting, and whether a value is that.
Expected = tuple[str, Callable[[Any], bool]]

#: The least and the most of settings that are numbers, where these are not 0 and infinity.
BOUNDS = {
    "mean_alpha": (0, 1), "bins": (2, math.inf), "max_windows": (1, math.inf),
    "alpha": (0, 1), "trees": (1, math.inf), "states": (1, math.inf),
}  # fmt: skip
ESTIMATORS = "factored", "counts"


def _is_called(given: Any) -> bool:
    return callable(given) and not isinstance(given, type)


def _are_names(given: Any) -> bool:
    several = isinstance(given, Collection) and not isinstance(given, str)
    return several and all(isinstance(name, str) for name in given)


def _are_families(given: Any) -> bool:
    classes = given.values() if isinstance(given, Mapping) else [None]
    return all(isinstance(each, type) and issubclass(each, Distribution) for each in classes)


def _are_positive(given: Any) -> bool:
    several = isinstance(given, Collection) and len(given) > 0
    return several and all(is_number(each) and each > 0 for each in given)


#: The settings whose type does not say what is expected.
OTHERS: Mapping[str, Expected] = {
    "independence": ("a test of independence", _is_called),
    "clustering": ("a clustering of rows", _is_called),
    "keep": (
        "several names, or 'all'",
        lambda given: given == "all" if isinstance(given, str) else _are_names(given),
    ),
    "ignore": ("several names", _are_names),
    "successors": (
        f"one of {', '.join(map(repr, ESTIMATORS))}, or a function of transitions",
        lambda given: given in ESTIMATORS if isinstance(given, str) else _is_called(given),
    ),
    "leaves": ("classes derived from Distribution, by variable or kind", _are_families),
    "held_out": ("a number between 0 and 1", lambda given: is_number(given) and 0 < given < 1),
    "pseudo_rows": ("numbers above 0", _are_positive),
}


def _expected(kind: Any, least: float, most: float) -> Expected:
    """Return what is expected of a setting of a type: a flag, one of some words, or a number."""
    if kind is bool:
        return "True or False", lambda given: isinstance(given, bool | np.bool_)
    if get_origin(kind) is Literal:
        words = get_args(kind)
        what = f"one of {', '.join(map(repr, words))}"
        return what, lambda given: isinstance(given, str) and given in words
    is_whole, is_optional = int in (kind, *get_args(kind)), type(None) in get_args(kind)

    def is_right(given: Any) -> bool:
        if given is None or not is_number(given):
            return given is None and is_optional
        return least <= given <= most and not (is_whole and isinstance(given, FLOATS))

    limits = f"{least:g} or more" if most == math.inf else f"{least:g} to {most:g}"
    return f"a {'whole ' * is_whole}number, {limits}{', or None' * is_optional}", is_right


def check_settings(settings: Any) -> None:
    """Refuse a dataclass of settings if one of them is not what its type and the tables say."""
    for each in fields(settings):
        given = getattr(settings, each.name)
        bounds = BOUNDS.get(each.name, (0, math.inf))
        what, is_right = OTHERS.get(each.name) or _expected(each.type, *bounds)
        if not is_right(given):
            raise DataError(
                f"{type(settings).__name__}: {each.name}: expected {what}, found {given!r}"
            )


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
        check_settings(self)
        if both := {*self.keep} & {*self.ignore}:
            raise DataError(f"LearnConfig: {min(both)!r} is to be kept and to be ignored")

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
        check_settings(self)
