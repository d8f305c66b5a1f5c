"""Transitions: logged steps, each from an S_L to the interface node that followed.

What turns them into the weights of every S_L is replaceable: see `Successors`. `Counts` is the
paper's way. A context is the joint value of all that a next step may depend on, as codes.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from rspmn.circuit import LatentFactors
from rspmn.context_trees import Contexts
from rspmn.data.columns import Column
from rspmn.data.distinct import find_sorted
from rspmn.data.keys import group_weights, joint_key
from rspmn.data.windows import States
from rspmn.learn.structure.rows import RowTable
from rspmn.schema import Kind, Schema
from rspmn.successor_counts import SharedFactors
from rspmn.types import Array, Bools, Ints

if TYPE_CHECKING:
    from rspmn.learn.successors.factored import Ties
    from rspmn.learn.successors.outcomes import SharedOutcomes
    from rspmn.learn.successors.priors import Factors

#: About the time that an edge of an S_L takes until it is part of a model.
SECONDS_PER_EDGE = 2.5e-6


@dataclass(frozen=True, eq=False)
class Transitions:
    """What was logged at every S_L. An S_L is also called a site."""

    schema: Schema
    table: RowTable  # of the windows; row i is window i
    states: States
    of_states: Ints  # [num_states], the interface node of each, below 0 if none
    #: Whether the states of an interface node are all states with certain values of each variable.
    #: If not, as at the edge of the log, each state is looked at on its own.
    boxes: Bools  # [interfaces]
    end: int | None  # the interface node END
    sites: int  # the number of S_L
    site: Ints  # [transitions], the S_L of each
    window: Ints  # [transitions]
    to: Ints  # [transitions], the interface node that followed
    counts: Array  # [transitions], how often
    share: Array  # [transitions], how much of a step each is: 1, unless it lacks values
    deadline: float = math.inf  # the `time.monotonic()` at which the time budget is used up
    ties: "Ties | None" = None  # what was learned of the same steps before, if anything was

    def too_late_for(self, edges: Callable[[], float] = lambda: 0) -> bool:
        """Say whether the time budget leaves no time to build so many edges."""
        if self.deadline == math.inf:
            return False
        return time.monotonic() + SECONDS_PER_EDGE * edges() >= self.deadline

    @cached_property
    def state_codes(self) -> dict[str, Ints]:  # [num_states] each
        """The code of each state's value of each variable; 0 where it is missing.

        Binned numbers have the codes of the intervals into which interface nodes divide them:
        numbers of one code are in the same interface nodes.
        """
        return {name: self._coded(name, column) for name, column in self.states.columns.items()}

    def _coded(self, name: str, column: Column) -> Ints:
        if name in self.table.binned:
            return self._intervals(column.numbers())
        if column.kind is not Kind.CONTINUOUS:
            return np.asarray(column.data, dtype=np.int64) + 1
        codes = np.unique(column.data, return_inverse=True)[1].ravel() + 1
        return np.where(np.isnan(column.data), 0, codes)

    def _intervals(self, numbers: Array) -> Ints:
        """Return a code for the set of interface nodes whose range each number is in."""
        known = (self.of_states >= 0) & ~np.isnan(numbers)
        low, high = np.full((2, self.interfaces), np.nan)
        np.fmin.at(low, self.of_states[known], numbers[known])
        np.fmax.at(high, self.of_states[known], numbers[known])
        begun = np.searchsorted(np.sort(low[~np.isnan(low)]), numbers, side="right")
        left = np.searchsorted(np.sort(high[~np.isnan(high)]), numbers, side="left")
        codes = np.unique(begun + left, return_inverse=True)[1].ravel() + 1
        return np.where(np.isnan(numbers), 0, codes)

    def codes_of(self, name: str, windows: Ints) -> tuple[Ints, int]:
        """Return the codes of a variable in some windows, and how many codes there are."""
        if name in self.states.columns:
            codes = self.state_codes[name]
            return codes[self.states.of_steps[windows]], int(codes.max(initial=0)) + 1
        return self.table.codes[name][windows].astype(np.int64) + 1, self.table.sizes[name] + 1

    @property
    def over(self) -> Bools:  # [transitions]
        """Whether the episode ended."""
        return np.asarray(self.to == (-1 if self.end is None else self.end))

    @property
    def interfaces(self) -> int:
        """The number of interface nodes."""
        return len(self.boxes)


@dataclass(frozen=True, eq=False)
class Component:
    """Variables with a joint distribution, and the joint value that they have in each state."""

    names: tuple[str, ...]
    values: Ints  # [num_states], numbered from 0
    size: int

    @classmethod
    def of(cls, transitions: Transitions, names: tuple[str, ...]) -> "Component":
        """Return the component of some variables."""
        codes = transitions.state_codes
        key = joint_key([(codes[name], int(codes[name].max()) + 1) for name in names])
        distinct, which = np.unique(key, return_inverse=True)
        return cls(names, which.astype(np.int64), len(distinct))


@dataclass(frozen=True, eq=False)
class Sharing:
    """The factors that S_L share, and how each S_L uses them."""

    factors: SharedFactors  # of no outcome yet
    site: Ints  # [uses], sorted
    combination: Ints  # [uses], of leaves
    share: Array  # [uses], sums to 1 for each S_L
    edge: Ints  # [edges], S_L · interface nodes + interface node, sorted
    left_out: Array  # [edges], the mass on each if one step that led there is left out

    def of_outcomes(self, uses: Ints, outcome: Ints, edges: Ints) -> SharedFactors:
        """Return the factors as outcomes use them, given their uses and edges, of many S_L."""
        left_out = np.append(self.left_out, 0.0)[find_sorted(self.edge, edges)]
        return replace(
            self.factors, outcome=tuple(outcome.tolist()),
            combination=tuple(self.combination[uses].tolist()),
            share=tuple(self.share[uses].tolist()), left_out=tuple(left_out.tolist()),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Spread:
    """Products of factors as parts of S_L, not multiplied out: each is a `FactoredLatents`."""

    factors: LatentFactors
    rows: Ints  # [products, components], the row of each component's table
    site: Ints  # [uses], sorted
    product: Ints  # [uses]
    weight: Array  # [uses], above 0; they and those of the edges sum to 1 for each site


@dataclass(frozen=True, eq=False)
class SuccessorWeights:
    """The weights of all S_L, sorted by S_L."""

    starts: Ints  # [sites + 1]; site k has the edges starts[k]:starts[k + 1]
    interfaces: Ints  # [edges], sorted within a site
    weights: Array  # [edges], above 0; they sum to 1 for each site
    counts: Array  # [edges], the logged steps behind each
    #: [sites], the number of steps that all but the counts is worth: with n steps counted,
    #: weight = (count + strength · prior) / (n + strength). None: weights are by counts alone.
    strength: Array | None = None
    #: What predicts decisions that were never made; None if nothing does.
    factors: "Factors | None" = None
    #: The factors behind `strength`; None: as evidence of how sure a weight is, only counts count.
    sharing: Sharing | None = None
    #: What factors add to the edges, where they are not multiplied out.
    spread: Spread | None = None
    #: What is added to the logged outcomes of each site; None: outcomes are as they were logged.
    outcomes: "SharedOutcomes | None" = None

    @property
    def site(self) -> Ints:  # [edges]
        """The site of each edge."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


class Successors(Protocol):
    """Weighs the successors of every S_L: transitions → (weights, info).

    `info` says what was done, for people; None if there is nothing to say. An implementation is
    checked by `check_successors` in tests/conformance. `docs/extending.md` shows one in full.
    """

    def __call__(self, transitions: Transitions) -> tuple[SuccessorWeights, object]:
        """Return the weights of every S_L, and what there is to say about them."""
        ...


def contexts_of(
    transitions: Transitions, names: Sequence[str], windows: Ints
) -> tuple[Contexts, Ints]:
    """Return the distinct contexts of some windows, and the number of each window's context."""
    columns = [transitions.codes_of(name, windows) for name in names]
    _, first, which = np.unique(joint_key(columns), return_index=True, return_inverse=True)
    sizes = np.array([size for _, size in columns], dtype=np.int64)
    codes = np.stack([codes[first] for codes, _ in columns], axis=1)
    kinds = transitions.schema.kinds
    ordered = frozenset(n for n in names if kinds[n] in (Kind.INTEGER, Kind.CONTINUOUS))
    return Contexts(tuple(names), sizes, codes, ordered), which.astype(np.int64)


@dataclass(frozen=True)
class Counts:
    """Weighs each interface node by how often it followed, as in the paper.

    Sec. 4, Step 4: count on the edge / visits to the sum. Edges without a count do not exist: they
    are pruned.
    """

    def __call__(self, transitions: Transitions) -> tuple[SuccessorWeights, None]:
        """Return the shares of the successors that were counted."""
        return count_successors(transitions), None


def count_successors(transitions: Transitions) -> SuccessorWeights:
    """Return the share of each interface node among the successors of each S_L."""
    size = transitions.interfaces
    edges, which = np.unique(transitions.site * size + transitions.to, return_inverse=True)
    count = group_weights(which, transitions.counts, len(edges))
    of_site = edges // size
    visits = group_weights(of_site, count, transitions.sites)
    starts = np.searchsorted(of_site, np.arange(transitions.sites + 1))
    return SuccessorWeights(starts, edges % size, count / visits[of_site], count)
