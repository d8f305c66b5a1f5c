"""Which variables of the state matter: for rewards, for the end, and for what matters next.

A tree of contexts predicts the utility from the state and the decisions, another one whether the
episode ends and, in turn, others the next value of each variable that matters. A variable matters
if decisions move it, or if the trees of what matters are likelier with it than without it. Splits
have a price, so that a tree that may choose among many variables gains nothing by chance; and a
variable is left out if trees that grow without it are about as likely: a copy of another, a habit
that says no more than the action it led to, or noise.

Trees see one variable at a time. What matters only together with another, as in x xor z, is found
by tests within strata of all that is known to matter, and of each other variable.

What is left is set aside if the log could have shown otherwise: each value must have been compared
with others where a tree expects the same and, if decisions depend on the variable, with each of
them. An expert acts by what matters, so that each value is seen with decisions of its own, and the
log cannot say what others would have led to.
"""

import math
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rspmn.context_trees import EVERY, LEAF, Contexts, Trees
from rspmn.data.columns import Column
from rspmn.data.distinct import distinct_integers, distinct_rows
from rspmn.data.keys import group_weights
from rspmn.learn.config import LearnConfig
from rspmn.learn.structure.contingency import RARE, distinct_weights
from rspmn.learn.structure.independence import pair_statistics
from rspmn.learn.structure.relevance import MOST_GIVEN, mean_p_values
from rspmn.learn.structure.rows import Rows, with_columns, with_joint_variable
from rspmn.learn.successors.avoided import LEAST_EXPECTED
from rspmn.learn.successors.gains import SeenValues, strengths
from rspmn.learn.successors.splits import Entries
from rspmn.learn.successors.trees import grow_trees
from rspmn.learn.two_step import TwoSteps
from rspmn.schema import Kind
from rspmn.types import Array, Bools, Ints
from rspmn.values import unused

#: A split must make a tree likelier by so many nats, beside the logarithm of the possible splits.
SPLIT = 6.0
#: A variable must make all trees together likelier by so many nats.
MARGIN = 6.0
#: The level of all tests of what matters only together with others.
LEVEL = 0.001
#: The levels of tests that decisions depend on a variable, and that anything depends on one that
#: decisions depend on.
ACTS, DOUBT = 0.01, 0.05
#: Each value of what is set aside was compared in so many times `LearnConfig.enough` steps.
OFTEN = 5.0
#: Nothing is set aside from a log of fewer times `LearnConfig.enough` steps.
LEAST = 50.0
#: At most so many distinct steps are looked at, spread over the log, and so many of their values.
MOST_STEPS, MOST_VALUES = 50_000, 5_000_000
#: Pairs are tested if steps times pairs times targets are at most so many; else in fewer steps, but
#: no fewer than this.
MOST_PAIRED, FEWEST_STEPS = 30_000_000, 500
#: So many variables may be expected to explain rare events by chance where one is found that does.
CHANCE = 3.0
#: Changes of numbers are predicted in so many bins of equal weight.
BINS = 10


class Relevance(NamedTuple):
    """What is known of the variables of the state."""

    kept: list[str]  # states differ by them; in the order of how much trees lose without them
    habits: list[str]  # others that decisions depend on
    uncompared: list[str]  # kept since decisions depend on them, and the log says no more of them


def relevance_of(
    two: TwoSteps, config: LearnConfig, keep: Collection[str], deadline: float = math.inf
) -> Relevance:
    """Return which variables states differ by.

    Those to keep are among them, and all are if that is not known by the `time.monotonic()` of the
    deadline.
    """
    names = two.rows.varying(two.schema.information_sets[0])
    search = _Search(two, names, frozenset(keep), deadline)
    matter = search.what_matters(config.enough)
    kept = [n for n in names if n in matter or not search.is_compared(n, config.enough)]
    if search.is_late:
        return Relevance(names, [], [])
    acts = [name for name in names if name in search.acted_by]
    return Relevance(
        sorted(kept, key=lambda name: -search.loss(name, search.fits)),
        [name for name in acts if name not in kept], [name for name in acts if name in kept],
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Tree:
    """A tree of one target, without the splits that are not worth their price."""

    score: float  # the logarithm of its likelihood, less prices
    used: frozenset[str]
    leaves: Ints  # of the tree's nodes, the leaf that stands for each
    at: Ints  # [steps], the node of each; -1 where the target is not known

    @property
    def leaf(self) -> Ints:  # [steps]
        """The leaf that each step is in; -1 where the target is not known."""
        return np.where(self.at >= 0, self.leaves[self.at], -1)


class _Search:
    """Grows trees of what follows a step, with some variables or without."""

    def __init__(
        self, two: TwoSteps, names: Sequence[str], keep: frozenset[str], deadline: float
    ) -> None:
        self.names, self.deadline, self.two = names, deadline, two
        self.decisions = two.schema.decisions
        most = min(MOST_STEPS, MOST_VALUES // max(1, len(names)))
        rows = two.rows.where(slice(None, None, -(-len(two.rows) // most)))
        self.after = {n: after for n in names if (after := two.after_of(n)) is not None}
        changes = {
            name: (unused(f"change of {name}", rows.table.columns), _change(rows, name, after))
            for name, after in self.after.items() if name in rows.table.binned
        }  # fmt: skip
        #: Of integers in bins, each value and the next one: they may be codes.
        taken = rows.table.columns
        self.codes = {
            name: tuple(unused(f"code of {n}", taken) for n in (name, self.after[name]))
            for name in changes if taken[name].kind is Kind.INTEGER
        }  # fmt: skip
        coded = {
            code: replace(taken[n], kind=Kind.CATEGORICAL)
            for name, codes in self.codes.items()
            for code, n in zip(codes, (name, self.after[name]), strict=True)
        }
        self.after |= {name: column for name, (column, _) in changes.items()}
        rows = with_columns(rows, dict(changes.values()) | coded)
        self.rows, self.decided = with_joint_variable(rows, self.decisions)
        self.trees: dict[tuple[str, frozenset[str]], _Tree] = {}
        laws = {name for law in two.schema.laws for name in law.variables}
        self.system = (keep | laws) & {*names}
        self.fits: dict[str, _Tree] = {}

    @property
    def is_late(self) -> bool:
        """Whether time has run out."""
        return time.monotonic() >= self.deadline

    def what_matters(self, enough: float) -> set[str]:
        """Return the variables that matter; all if time runs out."""
        self.system |= {name for name in self.names if self._is_moved(name)}
        new: Collection[str] = self.names
        while new and not self.is_late:
            self.fits = self._needed(frozenset(self.names))
            new = self._together(enough)
            self.system |= {*new}
        return {*self.names} if self.is_late else self._used(self.fits)

    def loss(self, name: str, fits: dict[str, _Tree]) -> float:
        """Return how much likelier trees of all else are with a variable than without it."""
        without = frozenset(self._used(fits)) - {name}
        return sum(
            tree.score - self._tree(target, without).score
            for target, tree in fits.items() if name in tree.used and target != name
        )  # fmt: skip

    def is_compared(self, name: str, enough: float) -> bool:
        """Return whether the log could have shown that a variable matters.

        If decisions depend on it, its values must have been seen with each of them beside others,
        and nothing may seem to depend on it; else each value beside others where trees expect the
        same, unless they are numbers. Of numbers that decisions depend on, values are too many.
        """
        rows, is_number = self.rows, name in self.rows.table.ordered
        if rows.total < LEAST * enough:
            return False
        if name in self.acted_by:
            matter = sorted(self._used(self.fits))
            strata = _within(rows, rows.joint_codes(self.decisions), matter)
            each_value = not self._is_acted_by_alone(name, matter)
            return (
                not is_number
                and is_compared(rows, name, self.decisions, strata, RARE, each_value)
                and not self._seems_to_matter(name, strata)
            )
        return is_number or all(
            self.is_late or is_compared(rows, name, (), tree.leaf, OFTEN * enough)
            for tree in self.fits.values()
        )

    def _seems_to_matter(self, name: str, strata: Ints) -> bool:
        """Return whether a test at a weak level finds that anything depends on a variable."""
        found = [self._p_values(self.rows, [name], target, strata)[0] for target in self.fits]
        if (utility := self.two.schema.utility) in self.rows.table.binned:
            found += mean_p_values(self.rows, [name], utility, strata)
        return bool(min(found) < DOUBT / len(found))

    # ---- trees -------------------------------------------------------------------------

    def _is_moved(self, name: str) -> bool:
        """Return whether the next value of a variable depends on decisions, given its value."""
        if name not in self.after or self.is_late:
            return False
        if self._grown(self.after[name], [name, *self.decisions], name).used & {*self.decisions}:
            return True
        if name not in self.codes:
            return False
        now, after = self.codes[name]
        rows, strata = _varying(self.rows, after, self.rows.codes(now).astype(np.int64))
        p = pair_statistics(rows, self.decisions, (after,), strata).low_p_values()
        return bool(len(rows) and p.min() < LEVEL)

    def _used(self, fits: dict[str, _Tree]) -> set[str]:
        """Return what trees look at, what is known to matter, and whether those are missing."""
        used = {name for tree in fits.values() for name in tree.used} | self.system
        used |= {absence for name, absence in self.two.schema.informative.items() if name in used}
        return used & {*self.names}

    def _needed(self, names: frozenset[str]) -> dict[str, _Tree]:
        """Return the trees of what matters, grown with as few variables as are needed."""
        fits = self._closed(names)
        while not self.is_late:
            looked_at = {name for tree in fits.values() for name in tree.used} - self.system
            losses = {name: self.loss(name, fits) for name in self.names if name in looked_at}
            least = min(losses, key=losses.__getitem__, default=None)
            if least is None or losses[least] > MARGIN:
                break
            fits = self._closed(frozenset(self._used(fits)) - {least})
        return fits

    def _closed(self, names: frozenset[str]) -> dict[str, _Tree]:
        """Return the trees of rewards, of the end, and of all that trees look at."""
        primed = {*self.two.primed.values()}
        waiting = [self.two.schema.utility, *(n for n in self.two.after if n not in primed)]
        waiting += [name for name in self.names if name in self.system]
        found: dict[str, _Tree] = {}
        while waiting and not self.is_late:
            target = waiting.pop(0)
            if target not in found and (target not in self.names or target in self.after):
                found[target] = self._tree(target, names)
                waiting += [name for name in self.names if name in found[target].used]
        return found

    def _tree(self, target: str, names: frozenset[str]) -> _Tree:
        """Return the tree of a target, given variables and the decisions before it.

        The target is the utility, the end, a decision, or the next value of a variable. What
        follows may depend on a variable and a decision together, on neither alone: of two trees,
        one of which is split by the decisions first, the likelier is taken.
        """
        key = target, names
        if key not in self.trees:
            given = [n for n in self.names if n in names]
            if target in self.decisions:
                before = self.decisions[: self.decisions.index(target)]
                self.trees[key] = self._grown(target, [*given, *before])
            else:
                column = self.after.get(target, target)
                trees = (
                    self._grown(column, [*given, *self.decisions]),
                    self._grown(column, [*given, *self.decisions, self.decided], self.decided),
                )
                self.trees[key] = max(trees, key=lambda tree: tree.score)
        return self.trees[key]

    def _grown(self, target: str, given: Sequence[str], first: str = "") -> _Tree:
        """Return the tree of a column; its root is split by the `first` variable, if any."""
        values = self.rows.codes(target).astype(np.int64)
        known = np.flatnonzero(values >= 0)
        at = np.full(len(values), -1)
        if not len(known) or not given:
            at[known] = 0
            return _Tree(0.0, frozenset(), np.zeros(1, dtype=np.int64), at)
        rows = self.rows.where(known)
        coded = rows.codes_of(given)
        codes, context = distinct_rows(coded.codes.astype(np.int64) + 1)
        ordered = frozenset(n for n in given if n in rows.table.ordered)
        contexts = Contexts(tuple(given), coded.sizes + 1, codes, ordered)
        value = distinct_integers(values[known])[1]
        entries = Entries.count(context, [value], rows.weights)
        roots = {0: given.index(first)} if first else {}
        trees = grow_trees(contexts, entries, roots, self.deadline)
        kinds = np.array([len(np.unique(column)) for column in contexts.columns])
        score, leaves, kept = _pruned(trees, kinds)
        at[known] = trees.find(contexts, 0)[context]
        used = frozenset(given[k] for k in np.unique(trees.variable[kept]).tolist())
        return _Tree(score, used, leaves, at)

    # ---- tests -------------------------------------------------------------------------

    def _together(self, enough: float) -> list[str]:
        """Return variables that matter only together with what does, or with each other."""
        others = [n for n in self.names if n not in self._used(self.fits)]
        if not others:
            return []
        decided = self.rows.joint_codes(self.decisions)
        strata = _within(self.rows, decided, sorted(self._used(self.fits)))
        level = LEVEL / (len(others) * len(self.fits))
        best: list[str] = []
        for target in self.fits:
            p = self._p_values(self.rows, others, target, strata)
            if target == self.two.schema.utility and target in self.rows.table.binned:
                p = np.minimum(p, mean_p_values(self.rows, others, target, strata))
            if p.min() < level:
                best, level = [others[int(p.argmin())]], float(p.min())
        return best or self._pair(others, decided) or self._explanation(others, strata, enough)

    def _pair(self, others: Sequence[str], decided: Ints) -> list[str]:
        """Return two variables that matter only together, if any do."""
        tests = len(others) ** 2 * len(self.fits)
        most = MOST_PAIRED // tests
        if len(others) < 2 or most < min(FEWEST_STEPS, len(self.rows)):
            return []
        every = slice(None, None, -(-len(self.rows) // most))
        rows, best, level = self.rows.where(every), [], LEVEL / tests
        for name in (n for n in others if rows.table.sizes[n] <= MOST_GIVEN):
            for target, tree in self.fits.items():
                strata = _within(rows, _joined(tree.leaf, decided)[every], [name])
                p = self._p_values(rows, others, target, strata)
                if p.min() < level:
                    best, level = [name, others[int(p.argmin())]], float(p.min())
        return best

    def _explanation(self, others: Sequence[str], strata: Ints, few: float) -> list[str]:
        """Return the variable that explains what the others leave to chance, if any does.

        If what matters determines a target in all but a few steps, these are too few for a tree,
        and likely something is missing: given which it is determined in these steps, too.
        """
        best, level = list[str](), min(DOUBT, CHANCE / len(others))
        for target in self.fits:
            column = self.after.get(target, target)
            if self.is_late or not 0 < _unexplained(self.rows, column, strata) < few:
                continue
            rows, given = _varying(self.rows, column, strata)
            p = pair_statistics(rows, others, (column,), given).p_values()[:, 0]
            for k in np.flatnonzero(p < level).tolist():
                within = _within(self.rows, strata, [others[k]])
                if p[k] < level and not _unexplained(self.rows, column, within):
                    best, level = [others[k]], float(p[k])
        return best

    def _p_values(self, rows: Rows, names: Sequence[str], target: str, strata: Ints) -> Array:
        """Return the levels at which a target depends on variables within strata."""
        column = self.after.get(target, target)
        rows, strata = _varying(rows, column, strata)
        if not len(rows) or self.is_late:
            return np.ones(len(names))
        return np.asarray(pair_statistics(rows, names, (column,), strata).low_p_values()[:, 0])

    @cached_property
    def acted_by(self) -> set[str]:
        """The other variables that a decision depends on, given those that matter."""
        matter = self._used(self.fits)
        others, found = [n for n in self.names if n not in matter], set[str]()
        for place, decision in enumerate(self.decisions if others else ()):
            leaf = self._tree(decision, frozenset(matter)).leaf
            strata = _joined(leaf, self.rows.joint_codes(self.decisions[:place]))
            p = pair_statistics(self.rows, others, (decision,), strata).low_p_values()[:, 0]
            level = ACTS / (len(others) * len(self.decisions))
            found |= {name for name, one in zip(others, p.tolist(), strict=True) if one < level}
        return found

    def _is_acted_by_alone(self, name: str, matter: Sequence[str]) -> bool:
        """Return whether decisions depend on no other variable, and it goes its own way."""
        trees = [self._tree(d, frozenset([*matter, name])) for d in self.decisions]
        if name in self.after:
            trees.append(self._grown(self.after[name], [*matter, *self.decisions, name]))
        return all(tree.used <= {name, *self.decisions} for tree in trees)


def _pruned(trees: Trees, kinds: Ints) -> tuple[float, Ints, Ints]:
    """Prune a tree by the prices of its splits.

    `kinds` is the number of values of each variable. Returned are its score, the node that stands
    for each node, and the nodes whose splits are kept.
    """
    node, _, weight = trees.cells
    seen = SeenValues.of(node, weight, len(trees.parent))
    score = np.max([seen.log_likelihood(s) for s in strengths(seen.width)], axis=0)
    ways = np.where(trees.value == EVERY, len(kinds), max(1, int(kinds[kinds > 2].sum())))
    price = SPLIT + np.log(ways)
    divided, kept = np.zeros(len(score)), trees.variable != LEAF
    for k in range(len(score) - 1, -1, -1):  # children come after their parents
        kept[k] &= divided[k] - price[k] > score[k]
        if kept[k]:
            score[k] = divided[k] - price[k]
        divided[trees.parent[k]] += score[k]
    stands = np.arange(len(score))
    for k in range(1, len(score)):
        above = stands[trees.parent[k]]
        if above != trees.parent[k] or not kept[above]:
            stands[k] = above
    return float(score[0]), stands, np.flatnonzero(kept & (stands == np.arange(len(score))))


def is_compared(
    rows: Rows, name: str, decisions: Sequence[str], strata: Ints, enough: float,
    each_value: bool = True,
) -> bool:  # fmt: skip
    """Return whether each value of a variable was often seen beside others, with each decision.

    Or, unless it is to be `each_value`, each value with all decisions but its usual one, and each
    decision at all values.

    Beside others: in the same stratum and with the same decisions; as often as the value or the
    others were seen there, whichever is less. What was never done at a value was left out by chance
    if few such steps were to be expected. Steps of a negative stratum do not count.
    """
    known = np.flatnonzero(strata >= 0)
    rows, strata = rows.where(known), _joined(strata[known], rows.joint_codes(decisions)[known])
    made, value, stratum = (
        distinct_integers(codes)[1]
        for codes in (rows.joint_codes(decisions), rows.codes(name), strata)
    )
    choices = int(made.max(initial=0)) + 1
    size = (int(value.max(initial=0)) + 1) * choices
    cell, at = distinct_integers(stratum * size + value * choices + made)
    own = group_weights(at, rows.weights)
    whole = group_weights(stratum, rows.weights)[cell // size]
    taken, compared = (
        group_weights(cell % size, w, size).reshape(-1, choices)
        for w in (own, np.minimum(own, whole - own))
    )
    if not each_value:
        usual = taken == taken.max(axis=1, keepdims=True)
        of_values, of_choices = (compared * ~usual).sum(axis=1), compared.sum(axis=0)
        return bool((of_values >= enough).all() and (of_choices >= enough).all())
    expected = np.outer(taken.sum(axis=1), taken.sum(axis=0)) / max(taken.sum(), 1e-300)
    chance = (taken == 0) & (expected < LEAST_EXPECTED)
    return bool(((compared >= enough) | chance).all())


def _varying(rows: Rows, target: str, strata: Ints) -> tuple[Rows, Ints]:
    """Return the rows of the strata in which a target varies, and their strata."""
    stratum = distinct_integers(strata)[1]
    codes, size = rows.codes(target).astype(np.int64), rows.table.sizes[target]
    key = (stratum * size + codes)[codes >= 0]
    seen = distinct_weights(key, np.ones(len(key)))[0] if len(key) else key
    varies: Bools = (np.bincount(seen // size, minlength=int(stratum.max()) + 1) > 1)[stratum]
    return rows.where(varies), stratum[varies]


def _unexplained(rows: Rows, target: str, strata: Ints) -> float:
    """Return the weight of the rows whose target is not the most frequent one of their stratum."""
    known = rows.codes(target) >= 0
    codes, weights = rows.codes(target)[known].astype(np.int64), rows.weights[known]
    size, stratum = rows.table.sizes[target], distinct_integers(strata[known])[1]
    cell, weight = distinct_weights(stratum * size + codes, weights)
    most = np.zeros(int(stratum.max(initial=-1)) + 1)
    np.maximum.at(most, cell // size, weight)
    return float(weight.sum() - most.sum())


def _within(rows: Rows, strata: Ints, names: Sequence[str]) -> Ints:  # [rows]
    """Return strata, each divided by the joint value of more variables, and numbered."""
    return _joined(strata, rows.joint_codes(names))


def _joined(strata: Ints, codes: Ints) -> Ints:  # [rows]
    """Return the numbers of the pairs of two codes."""
    one, other = (distinct_integers(numbers)[1] for numbers in (strata, codes))
    return distinct_integers(one * (int(other.max(initial=0)) + 1) + other)[1]


def _change(rows: Rows, name: str, after: str) -> Column:
    """Return the next number less what the number itself predicts linearly, in bins.

    Bins of the number alone would not do: what is in one bin before may be in two after, and of an
    attribute these are different episodes.
    """
    before, next_one = (rows.table.columns[n].numbers() for n in (name, after))
    known = ~np.isnan(before) & ~np.isnan(next_one)
    codes = np.where(known, 0, -1).astype(np.int32)
    x, y = before[known], next_one[known]
    slope = np.cov(x, y)[0, 1] / max(float(np.var(x, ddof=1)), 1e-300) if len(x) > 1 else 0.0
    rest = y - slope * x
    if len(x) > 1 and np.std(rest) > 1e-9 * np.std(y):
        borders = np.unique(np.quantile(rest, np.arange(1, BINS) / BINS))
        codes[known] = np.searchsorted(borders, rest, side="right")
    return Column(Kind.CATEGORICAL, codes, tuple(range(BINS)))
