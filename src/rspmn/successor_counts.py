"""Counts behind a learned model: how often each outcome of a decision led to each interface node.

The weights of a template are estimates. What they were estimated from says how sure they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rspmn.errors import CircuitError
from rspmn.types import Ints
from rspmn.values import LARGEST_UTILITY, LEAST_STEPS, MOST_STEPS


@dataclass(frozen=True)
class SharedFactors:
    """Factors of the next state that outcomes share.

    The state has components. Each has distributions, called leaves, given by how often each value
    followed. A combination is a leaf of each component: the state is distributed as their product.
    A box is a set of states: all that have certain values of each component. What follows an
    outcome is a mixture of combinations, each over boxes, and a box belongs to interface nodes.
    """

    strength: float  # κ: the number of steps that the factors are worth
    least_strength: float  # the least κ that the log does not rule out
    components: int
    leaf: tuple[int, ...]  # [cells]
    value: tuple[int, ...]  # [cells], numbered over all components
    steps: tuple[float, ...]  # [cells], how often the value followed in the leaf
    leaves: tuple[int, ...]  # [combinations · components], by combination
    member: tuple[int, ...]  # [members], a value
    member_of: tuple[int, ...]  # [members], a box that has it
    box: tuple[int, ...]  # [shares of boxes]
    interface: tuple[int, ...]  # [shares of boxes], an interface node
    box_share: tuple[float, ...]  # [shares of boxes], sums to 1 for each box
    outcome: tuple[int, ...] = ()  # [uses], sorted
    combination: tuple[int, ...] = ()  # [uses]
    share: tuple[float, ...] = ()  # [uses], sums to 1 for each outcome
    #: What the factors give each edge of the counts if one of its steps is left out.
    left_out: tuple[float, ...] = ()  # [edges]
    #: Cells of one parameter have the same steps behind them. Empty: each is its own.
    parameter: tuple[int, ...] = ()  # [cells]

    def __post_init__(self) -> None:
        for names in (
            ("leaf", "value", "steps"), ("member", "member_of"), ("box", "interface", "box_share"),
            ("outcome", "combination", "share"),
        ):  # fmt: skip
            _same_length("factors", {name: getattr(self, name) for name in names})
        for name in ("leaf", "value", "leaves", "member", "member_of", "box", "interface",
                     "outcome", "combination", "parameter"):  # fmt: skip
            _from_zero("factors", name, getattr(self, name))
        if max(self.box, default=-1) > max(self.member_of, default=-1):
            raise CircuitError("factors: a share of a box that has no values")
        if self.parameter:
            self._check_parameters()
        _above_zero("factors", "steps", self.steps)
        for name in ("box_share", "share", "left_out"):
            _from_zero("factors", name, getattr(self, name), 1 + 1e-9)
        _from_zero("factors", "strength", [self.strength, self.least_strength])
        _all_numbers("factors", "leaf", self.leaf)
        _all_numbers("factors", "member_of", self.member_of)
        if self.components < 1 or len(self.leaves) % self.components:
            raise CircuitError(
                f"factors: {len(self.leaves)} leaves do not make combinations of "
                f"{self.components} components"
            )
        known, combinations = set(self.leaf), len(self.leaves) // self.components
        if not known.issuperset(self.leaves):
            raise CircuitError("factors: a combination names a leaf in which nothing was seen")
        if max(self.combination, default=-1) >= combinations:
            raise CircuitError(
                f"factors: expected one of {combinations} combinations, found "
                f"{max(self.combination)}"
            )

    def _check_parameters(self) -> None:
        """Refuse cells of one parameter with other steps behind them."""
        _same_length("factors", {"leaf": self.leaf, "parameter": self.parameter})
        _all_numbers("factors", "parameter", self.parameter)
        steps = dict(zip(self.parameter, self.steps, strict=True))
        if any(steps[k] != n for k, n in zip(self.parameter, self.steps, strict=True)):
            raise CircuitError("factors: expected the same steps in all cells of a parameter")


@dataclass(frozen=True)
class SharedUtilities:
    """Utilities of outcomes as all branches predict them together.

    A prediction is the mean of a leaf of a tree: outcomes of one leaf err together.
    """

    strength: float  # κ_u: the number of steps that a prediction is worth to a branch
    least_strength: float  # the least κ_u that the log does not rule out
    outcome: tuple[int, ...]  # [predictions], sorted
    share: tuple[float, ...]  # [predictions], of the outcomes of a branch; sums to 1 for each
    mean: tuple[float, ...]  # [predictions]
    variance: tuple[float, ...]  # [predictions], of single utilities
    leaf: tuple[int, ...]  # [predictions]
    leaf_steps: tuple[float, ...]  # [leaves], the logged steps behind each

    def __post_init__(self) -> None:
        names = ("outcome", "share", "mean", "variance", "leaf")
        _same_length("utilities", {name: getattr(self, name) for name in names})
        for name in ("outcome", "leaf"):
            _from_zero("utilities", name, getattr(self, name))
        _from_zero("utilities", "share", self.share, 1 + 1e-9)
        _from_zero("utilities", "variance", self.variance, LARGEST_UTILITY**2)
        _above_zero("utilities", "leaf_steps", self.leaf_steps)
        _from_zero("utilities", "strength", [self.strength, self.least_strength])
        _all_numbers("utilities", "leaf", self.leaf)
        _finite("utilities", "mean", self.mean)
        if len(set(self.outcome)) != len(self.outcome):
            raise CircuitError("utilities: expected one prediction for each outcome")
        if len(self.leaf_steps) != max(self.leaf, default=-1) + 1:
            raise CircuitError(
                f"utilities: {len(self.leaf_steps)} of 'leaf_steps', but leaves up to "
                f"{max(self.leaf, default=-1)}"
            )


@dataclass(frozen=True)
class HeldOutRows:
    """Logged single decisions, and what models of the other ones expect of them.

    Each model was learned without the contexts of the rows that it is asked about. Actions are the
    values of the decision, in any order.
    """

    actions: int  # how many
    made: tuple[int, ...]  # [rows], the action
    utility: tuple[float, ...]  # [rows]
    weight: tuple[float, ...]  # [rows], how often each was logged
    worth: tuple[float, ...]  # [rows · actions], what each action is expected to earn
    steps: tuple[float, ...]  # [rows · actions], the logged steps of each in like contexts
    offered: tuple[int, ...]  # [rows · actions], 1 if it may be taken, else 0

    def __post_init__(self) -> None:
        _same_length("rows", {n: getattr(self, n) for n in ("made", "utility", "weight")})
        _same_length("rows", {name: getattr(self, name) for name in ("worth", "steps", "offered")})
        rows = len(self.made)
        if not rows or self.actions < 1 or len(self.worth) != rows * self.actions:
            raise CircuitError(
                f"rows: {len(self.worth)} values for {rows} rows of {self.actions} actions"
            )
        _from_zero("rows", "made", self.made, self.actions - 1)
        for name in ("utility", "worth"):
            _finite("rows", name, getattr(self, name))
        _above_zero("rows", "weight", self.weight)
        _from_zero("rows", "steps", self.steps)
        _from_zero("rows", "offered", self.offered, 1)


@dataclass(frozen=True)
class SuccessorCounts:
    """Logged steps by outcome and successor.

    An *outcome* is a product node that has an S_L among its children: a utility and what follows.
    Outcomes are numbered in the order of the template's nodes.
    """

    starts: tuple[float, ...]  # [interfaces], episodes that began there
    outcome: tuple[int, ...]  # [edges]
    to: tuple[int, ...]  # [edges], interface node
    steps: tuple[float, ...]  # [edges], above 0
    mean: tuple[float, ...]  # [edges], of the utility in these steps
    variance: tuple[float, ...]  # [edges]
    #: The least and the most that a step earned which went on, and that one earned which ended an
    #: episode; empty if there was none, or if it is not known.
    going: tuple[float, ...] = ()
    ending: tuple[float, ...] = ()
    #: What weights were estimated from beside counts; None if from counts alone.
    factors: SharedFactors | None = None
    #: What utilities were estimated from beside those logged; None if from these alone.
    utilities: SharedUtilities | None = None
    #: Of single decisions in contexts that were learned to be alike: what policies are valued by.
    held_out: HeldOutRows | None = None

    def __post_init__(self) -> None:
        names = ("outcome", "to", "steps", "mean", "variance")
        _same_length("counts", {name: getattr(self, name) for name in names})
        for name in ("starts", "outcome", "to"):
            _from_zero("counts", name, getattr(self, name))
        _above_zero("counts", "steps", self.steps)
        _from_zero("counts", "variance", self.variance, LARGEST_UTILITY**2)
        _finite("counts", "mean", self.mean)
        for name in ("going", "ending"):
            check_range("counts", name, getattr(self, name))
        if self.factors is not None and len(self.factors.left_out) != len(self.outcome):
            raise CircuitError(
                f"counts: {len(self.outcome)} of 'outcome', but {len(self.factors.left_out)} left "
                "out by the factors"
            )
        if self.utilities is not None and self.factors is None:
            raise CircuitError("counts: utilities are shared only where factors are")

    @property
    def outcomes(self) -> int:
        """The number of outcomes, as far as they are counted or use what is shared."""
        shared = [part.outcome for part in (self.factors, self.utilities) if part is not None]
        return max(max(of, default=-1) for of in (self.outcome, *shared)) + 1

    def renumbered(self, number: Ints) -> "SuccessorCounts":
        """Return the counts of a template in which each outcome has another number, in order."""

        def of(outcomes: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(number[np.array(outcomes, dtype=np.int64)].tolist())

        factors, utilities = self.factors, self.utilities
        return replace(
            self, outcome=of(self.outcome),
            factors=factors and replace(factors, outcome=of(factors.outcome)),
            utilities=utilities and replace(utilities, outcome=of(utilities.outcome)),
        )  # fmt: skip

    def check_fit(self, interfaces: int) -> None:
        """Refuse counts of a template with another number of roots."""
        _check_starts(self.starts, interfaces)
        shared = () if self.factors is None else self.factors.interface
        most = max(max(nodes, default=0) for nodes in (self.to, shared))
        if most >= interfaces:
            raise CircuitError(
                f"RSPMN: counts name interface node {most}, but the template has {interfaces} roots"
            )


@dataclass(frozen=True)
class StepSample:
    """Logged steps as points: of all of them, or of many.

    Points have the numbers that soft boxes differ by, then the categories as codes: places among
    the values that interface nodes have, in order. Decisions are places among their values.
    """

    columns: int  # how many numbers and categories a point has
    here: tuple[float, ...]  # [steps · columns], by step
    after: tuple[float, ...]  # [steps · columns]; where an episode ended, the point before that
    made: tuple[int, ...]  # [steps · decisions], by step
    ended: tuple[int, ...]  # [steps], 1 where an episode ended, else 0
    utility: tuple[float, ...]  # [steps]
    weight: tuple[float, ...]  # [steps], how often each was logged
    begins: tuple[float, ...]  # [points · columns], where episodes began
    begin_weight: tuple[float, ...]  # [points]

    def __post_init__(self) -> None:
        steps, points = len(self.utility), len(self.begin_weight)
        _same_length("steps", {"utility": self.utility, "ended": self.ended, "weight": self.weight})
        if not (steps and points and self.columns > 0):
            raise CircuitError("steps: expected steps, points where episodes began, and columns")
        lengths = len(self.here), len(self.after), len(self.begins)
        if lengths != (steps * self.columns, steps * self.columns, points * self.columns):
            raise CircuitError(
                f"steps: {lengths} numbers do not make points of {self.columns} columns: {steps} "
                f"steps, and {points} where episodes began"
            )
        for name in ("here", "after", "begins", "utility"):
            _finite("steps", name, getattr(self, name))
        if len(self.made) % steps or not self.made:
            raise CircuitError(f"steps: {len(self.made)} decisions for {steps} steps")
        _from_zero("steps", "made", self.made)
        _from_zero("steps", "ended", self.ended, 1)
        for name in ("weight", "begin_weight"):
            _above_zero("steps", name, getattr(self, name))


@dataclass(frozen=True)
class SoftCounts:
    """Logged steps by outcome, where interface nodes are soft boxes.

    A step is shared by the nodes it belongs to, so that the steps of all outcomes sum to those of
    the log. What follows is estimated from steps elsewhere too.
    """

    starts: tuple[float, ...]  # [interfaces], episodes that began there
    steps: tuple[float, ...]  # [outcomes]
    #: How many draws from the weights of its S_L have a mean as sure as the expected state.
    landing: tuple[float, ...]  # [outcomes]
    shared: float  # the steps that estimates shared by all nodes are worth to each
    #: The least and the most that a step earned which went on, and that one earned which ended an
    #: episode; empty if there was none, or if it is not known.
    going: tuple[float, ...] = ()
    ending: tuple[float, ...] = ()
    #: 1 if numbers jump, so that moves are of several kinds; else 0.
    jumps: int = 0
    #: Logged steps, from which values are estimated without the model; None if not known.
    sample: StepSample | None = None

    def __post_init__(self) -> None:
        _same_length("counts", {"steps": self.steps, "landing": self.landing})
        for name in ("going", "ending"):
            check_range("counts", name, getattr(self, name))
        for name in ("starts", "steps"):
            _from_zero("counts", name, getattr(self, name))
        _from_zero("counts", "landing", self.landing, 1 / LEAST_STEPS)
        _from_zero("counts", "shared", [self.shared], 1 / LEAST_STEPS)
        _from_zero("counts", "jumps", [self.jumps], 1)

    def renumbered(self, number: Ints, outcomes: int) -> "SoftCounts":
        """Return the counts of a template with more outcomes; `number`: those of the old ones."""
        steps, landing = np.zeros((2, outcomes))
        steps[number[: len(self.steps)]] = self.steps
        landing[number[: len(self.steps)]] = self.landing
        return replace(self, steps=tuple(steps.tolist()), landing=tuple(landing.tolist()))

    def check_fit(self, interfaces: int) -> None:
        """Refuse counts of a template with another number of roots."""
        _check_starts(self.starts, interfaces)


def _check_starts(starts: Sequence[float], interfaces: int) -> None:
    if len(starts) != interfaces:
        raise CircuitError(
            f"RSPMN: counts of {len(starts)} starts, but the template has {interfaces} roots"
        )


def _same_length(what: str, lists: dict[str, Sequence[float]]) -> None:
    first, *others = lists
    for name in others:
        if len(lists[name]) != len(lists[first]):
            raise CircuitError(
                f"{what}: {len(lists[first])} of {first!r}, but {len(lists[name])} of {name!r}"
            )


def _from_zero(what: str, name: str, numbers: Sequence[float], most: float = MOST_STEPS) -> None:
    odd = [number for number in numbers if not 0 <= number <= most]
    if odd:
        raise CircuitError(f"{what}: {name}: expected numbers from 0 to {most:.3g}, found {odd[0]}")


def _finite(what: str, name: str, numbers: Sequence[float]) -> None:
    odd = [number for number in numbers if not abs(number) <= LARGEST_UTILITY]
    if odd:
        raise CircuitError(f"{what}: {name}: expected finite numbers, found {odd[0]}")


def check_range(what: str, name: str, ends: Sequence[float]) -> None:
    """Refuse what is neither empty nor the least and the most of some numbers."""
    _finite(what, name, ends)
    if ends and (len(ends) != 2 or ends[0] > ends[1]):
        raise CircuitError(f"{what}: {name}: expected the least and the most, found {ends}")


def _above_zero(what: str, name: str, steps: Sequence[float]) -> None:
    odd = [number for number in steps if not LEAST_STEPS <= number <= MOST_STEPS]
    if odd:
        raise CircuitError(
            f"{what}: {name}: expected numbers above 0, up to {MOST_STEPS:.3g}, found {odd[0]}"
        )


def _all_numbers(what: str, name: str, numbers: Sequence[int]) -> None:
    """Refuse a numbering that leaves numbers out: arrays are as long as the largest."""
    if len(set(numbers)) != max(numbers, default=-1) + 1:
        raise CircuitError(
            f"{what}: {name}: expected all numbers from 0 to the largest, {max(numbers)}"
        )
