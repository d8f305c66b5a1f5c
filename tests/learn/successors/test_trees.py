"""Trees of contexts: the worth of a split by hand, and all of it against a slow witness."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rspmn.context_trees import EVERY, LEAF, Contexts, Trees
from rspmn.learn.successors.gains import Gains
from rspmn.learn.successors.splits import Entries, Open, dependent_components
from rspmn.learn.successors.trees import grow_trees, learn_tied
from rspmn.types import Array

Codes = list[tuple[int, ...]]


def contexts(codes: Codes, sizes: tuple[int, ...]) -> Contexts:
    names = tuple(f"x{k}" for k in range(len(sizes)))
    return Contexts(names, np.array(sizes), np.array(codes).reshape(-1, len(sizes)))


def entries(context: list[int], value: list[int], weight: list[float] | None = None) -> Entries:
    size = len(context)
    weights = np.ones(size) if weight is None else np.array(weight)
    return Entries(np.zeros(size, np.int64), np.array(context), np.array(value), weights)


# ---- a slow witness -----------------------------------------------------------------------


def gains_of(level: Open) -> Gains:
    parts = level._parts(slice(0, 1), level.cell, level.context, level.weight)
    return parts.gains(level.seen.likeliest())


def log_likelihood(counts: dict[int, float], kinds: int, spread: bool) -> float:
    """Return log of Γ(s)/Γ(s + N) · Π Γ(n + s/K)/Γ(s/K), where s is 1 or, if spread, K."""
    s = kinds if spread and kinds > 2 else 1.0
    each = s / kinds
    inside = sum(math.lgamma(n + each) - math.lgamma(each) for n in counts.values())
    return inside + math.lgamma(s) - math.lgamma(s + sum(counts.values()))


def likeliest(whole: dict[int, float], parts: list[dict[int, float]]) -> float:
    """Return the log-likelihood of parts with the likelier prior, the second of which is favoured.

    The favour is the number of ways to share out N steps to K values; not of more than two parts.
    """
    kinds, steps = len(whole), sum(whole.values())
    ways = math.lgamma(steps + kinds) - math.lgamma(steps + 1) - math.lgamma(kinds)
    favour = ways if kinds > 2 and len(parts) < 3 else 0.0
    sparse, spread = (sum(log_likelihood(p, kinds, way) for p in parts) for way in (False, True))
    return max(sparse, spread + favour)


def counted(rows: list[tuple[tuple[int, ...], int, float]]) -> dict[int, float]:
    found: dict[int, float] = {}
    for _, value, weight in rows:
        found[value] = found.get(value, 0.0) + weight
    return found


def slow_leaves(
    rows: list[tuple[tuple[int, ...], int, float]],
) -> list[list[tuple[tuple[int, ...], int, float]]]:
    """Divide rows (codes, value, weight) as the definition says; return the leaves."""
    all_of = counted(rows)
    whole = likeliest(all_of, [all_of])
    variables = range(len(rows[0][0]))
    domains = [sorted({codes[k] for codes, _, _ in rows}) for k in variables]
    varying = [k for k in variables if len(domains[k]) > 1]
    options = []
    for k in varying:
        parts = [[row for row in rows if row[0][k] == code] for code in domains[k]]
        gain = likeliest(all_of, [counted(part) for part in parts]) - whole
        options.append((gain - math.log(len(varying)), 1, -k, 0, parts))
        for code in domains[k] if len(domains[k]) > 2 else []:
            parts = [[row for row in rows if (row[0][k] == code) is one] for one in (True, False)]
            gain = likeliest(all_of, [counted(part) for part in parts]) - whole
            cells = sum(len(domains[v]) for v in varying)
            options.append((gain - math.log(cells), 0, -k, -code, parts))
    best = max(options, key=lambda option: option[:4], default=None)
    if best is None or best[0] <= 1e-9:
        return [rows]
    return [leaf for part in best[-1] for leaf in slow_leaves(part)]


@st.composite
def logs(draw: st.DrawFn) -> tuple[Codes, tuple[int, ...], list[int], list[int], list[float]]:
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    possible = list(product(*(range(size) for size in sizes)))
    codes = draw(st.lists(st.sampled_from(possible), min_size=1, max_size=12, unique=True))
    cell = st.tuples(st.integers(0, len(codes) - 1), st.integers(0, 3))
    cells = draw(st.lists(cell, min_size=1, max_size=25, unique=True))
    # weights without ties: which of two equal splits is taken does not matter here
    weights = [draw(st.integers(1, 30)) + 0.01 * k for k in range(len(cells))]
    return codes, sizes, [c for c, _ in cells], [z for _, z in cells], weights


@given(logs())
def test_trees_are_those_of_the_definition(
    log: tuple[Codes, tuple[int, ...], list[int], list[int], list[float]],
) -> None:
    codes, sizes, context, value, weight = log
    seen = contexts(codes, sizes)
    trees = grow_trees(seen, entries(context, value, weight), {})
    leaf = trees.find(seen, 0)[context]
    fast = {tuple(sorted(np.flatnonzero(leaf == k).tolist())) for k in set(leaf.tolist())}
    rows = [(codes[c], z, w) for c, z, w in zip(context, value, weight, strict=True)]
    place = {row: k for k, row in enumerate(rows)}
    slow = {tuple(sorted(place[row] for row in part)) for part in slow_leaves(rows)}
    assert fast == slow


@pytest.mark.parametrize(("first", "depth"), [({}, 0), ({0: 1}, 1)])
def test_no_level_is_grown_after_the_deadline(first: dict[int, int], depth: int) -> None:
    """But for the split that is made in any case; counts are whole."""
    codes: Codes = [(a, b) for a in range(2) for b in range(2)]
    seen = contexts(codes, (2, 2))
    log = entries([0, 1, 2, 3], [0, 0, 1, 1], [50.0] * 4)
    whole, late = (grow_trees(seen, log, first, end) for end in (math.inf, 0.0))
    assert len(whole.variable) > len(late.variable) == 1 + 2 * depth
    assert late.cells[2][late.cells[0] == 0].tolist() == [100.0, 100.0]


@given(logs())
def test_counts_of_a_node_are_those_of_its_children(
    log: tuple[Codes, tuple[int, ...], list[int], list[int], list[float]],
) -> None:
    codes, sizes, context, value, weight = log
    seen = contexts(codes, sizes)
    tied = learn_tied(seen, np.array(context), [np.array(value)], np.array(weight))
    counts = tied.counts.toarray()
    for node in np.flatnonzero(tied.trees.variable != LEAF).tolist():
        children = np.flatnonzero(tied.trees.parent == node)
        children = children[children != node]
        assert counts[node] == pytest.approx(counts[children].sum(axis=0))
    assert counts[0].sum() == pytest.approx(sum(weight))


# ---- by hand ------------------------------------------------------------------------------


def test_the_worth_of_a_split_by_hand() -> None:
    """x0 decides the value. Two values, each with half a step in the prior; three steps each.

    Apart: (1/2 · 3/2 · 5/2 / (1 · 2 · 3))² = (5/16)²; together: (1/2 · 3/2 · 5/2)² / 6! = 25/5120.
    The ratio is 20; there is one variable, so nothing is to be said about which.
    """
    seen = contexts([(0,), (1,)], (2,))
    level = Open(seen, entries([0, 1], [0, 1], [3.0, 3.0]), np.zeros(2, np.int64), np.arange(2))
    gains = gains_of(level)
    every, single, up_to = gains.gain[:, 0, 0]
    assert math.exp(every) == pytest.approx(20.0)
    assert single == up_to == -math.inf  # of two values one alone is the same split
    variable, value = level.best_splits()
    assert (variable.tolist(), value.tolist()) == ([0], [EVERY])


def test_parts_with_one_step_each_say_nothing() -> None:
    """Three contexts, each seen once, with a value of its own: no reason to tell them apart.

    Apart each is as likely as 1/3: together 1/27. As one node, few values expected: (1/3)³ / 3! =
    1/162, of which 1/27 is six times as much. All values expected: 2! / 5! = 1/60, favoured by the
    number of ways to share out 3 steps to 3 values, 5! / (3! 2!) = 10: 1/6, and the ratio is 6/27.
    """
    seen = contexts([(0,), (1,), (2,)], (3,))
    level = Open(seen, entries([0, 1, 2], [0, 1, 2]), np.zeros(3, np.int64), np.arange(3))
    assert level.seen.log_likelihood(np.ones(1)) == pytest.approx(math.log(1 / 162))
    assert level.seen.likeliest() == pytest.approx(math.log(1 / 6))
    assert gains_of(level).gain[0, 0, 0] == pytest.approx(math.log(6 / 27))
    assert level.best_splits()[0].tolist() == [LEAF]


def test_what_is_spread_is_one_leaf() -> None:
    """The demand of a day is any of eleven numbers, in each of thirty states alike."""
    rng = np.random.default_rng(0)
    seen = contexts([(k,) for k in range(30)], (30,))
    for steps in (60, 200, 2_000):
        context, value = rng.integers(30, size=steps), rng.binomial(10, 0.5, size=steps)
        tied = learn_tied(seen, context, [value], np.ones(steps))
        assert tied.num_leaves(1) == (1,)


def test_joint_values_of_variables_add_up_to_each() -> None:
    """Both ways to count have the same cells and, as weights are whole numbers, the same sums."""
    rng = np.random.default_rng(0)
    sizes = (2, 3, 4)
    seen = contexts([(a, b, c) for a in range(2) for b in range(3) for c in range(4)], sizes)
    context, value = rng.integers(0, 24, 500), rng.integers(0, 3, 500)
    counted = entries(context.tolist(), value.tolist(), rng.integers(1, 9, 500).tolist())
    level = Open(seen, counted, np.arange(500) % 2, np.arange(500))
    asked = slice(0, 3), level.cell, level.context, level.weight
    one, other = level._joined(*asked), level._side_by_side(*asked)
    for part, same in zip(one, other, strict=True):
        assert part.tolist() == same.tolist()
    assert level._are_joined(slice(0, 3), 4 * 24 * 6)
    assert not level._are_joined(slice(0, 3), 4 * 24 * 6 - 1)


def test_leaves_are_the_same_looked_up_and_one_by_one() -> None:
    """Of four variables two matter, so that many contexts have few joint values of these."""
    rng = np.random.default_rng(0)
    seen = contexts(rng.integers(0, 4, (400, 4)).tolist(), (4, 4, 4, 5))  # a 4 is never seen
    value = seen.codes[:, 0] + 4 * (seen.codes[:, 2] == 3)
    tied = learn_tied(seen, np.arange(400), [value, np.zeros_like(value)], np.ones(400))
    asked = contexts(rng.integers(0, 4, (400, 4)).tolist(), (4, 4, 4, 5))
    assert tied.trees._used == [[0, 2], []]
    for component in range(2):
        found = tied.trees.find(asked, component)
        assert found.tolist() == tied.trees._walk(asked.codes, component).tolist()
    assert len(set(tied.trees.find(asked, 0).tolist())) == 8


def test_one_value_against_all_others() -> None:
    """Of nine actions one reboots: two leaves, not nine."""
    seen = contexts([(a,) for a in range(9)], (9,))
    rng = np.random.default_rng(0)
    context = np.repeat(np.arange(9), 60)
    value = np.where(context == 4, 1, rng.random(len(context)) < 0.6).astype(np.int64)
    tied = learn_tied(seen, context, [value], np.ones(len(context)))
    leaf = tied.trees.find(seen, 0)
    assert len(set(leaf.tolist())) == 2
    assert np.flatnonzero(leaf == leaf[4]).tolist() == [4]
    assert tied.distribution(seen).toarray()[4] == pytest.approx([0, 1])


def test_numbers_are_split_where_they_differ() -> None:
    """Tired from the third lesson on: two leaves, the order of numbers taken into account."""
    plain = contexts([(k,) for k in range(6)], (6,))
    ordered = Contexts(plain.names, plain.sizes, plain.codes, frozenset(plain.names))
    context = np.repeat(np.arange(6), 8)
    value = np.array([k % 4 != 3 if c < 3 else k % 4 == 3 for c in range(6) for k in range(8)])
    for seen, leaves in ((ordered, [0, 0, 0, 1, 1, 1]), (plain, [0, 1, 2, 3, 4, 5])):
        tied = learn_tied(seen, context, [value.astype(np.int64)], np.ones(len(context)))
        leaf = tied.trees.find(seen, 0)
        assert (np.array(leaves)[:, None] == leaves).tolist() == (leaf[:, None] == leaf).tolist()
        assert tied.distribution(seen).toarray()[:, 1] == pytest.approx([0.75] * 3 + [0.25] * 3)


@given(st.integers(0, 2**32 - 1))
def test_the_gain_of_a_bound_is_that_of_two_parts(seed: int) -> None:
    """Against the definition: the counts of each side in the formula of the page on factors."""
    rng = np.random.default_rng(seed)
    size, values = int(rng.integers(3, 7)), int(rng.integers(2, 4))
    counts = rng.integers(0, 4, size=(size, values)).astype(float)
    counts[:, 0] += 1  # each number is seen
    plain = contexts([(k,) for k in range(size)], (size,))
    seen = Contexts(plain.names, plain.sizes, plain.codes, frozenset(plain.names))
    context, value = np.nonzero(counts)
    level = Open(
        seen, entries(context.tolist(), value.tolist(), counts[context, value].tolist()),
        np.zeros(len(context), np.int64), np.arange(len(context)),
    )  # fmt: skip
    gains = gains_of(level)
    known = np.flatnonzero(counts.sum(axis=0))

    def of(part: Array) -> dict[int, float]:
        return dict(enumerate(part.sum(axis=0)[known].tolist()))

    whole = of(counts)
    divided = ([of(counts[: k + 1]), of(counts[k + 1 :])] for k in range(size - 1))
    best = max(likeliest(whole, parts) for parts in divided)
    if len(known) > 1:
        assert gains.gain[2, 0, 0] == pytest.approx(best - likeliest(whole, [whole]))


@given(st.integers(0, 2**32 - 1))
def test_copies_of_a_variable_change_nothing(seed: int) -> None:
    """The number of possible splits, which gains are reduced by, does not count them."""
    rng = np.random.default_rng(seed)
    codes: Codes = [(a, b) for a in range(3) for b in range(2)]
    plain, copied = contexts(codes, (3, 2)), contexts([(a, b, 2 - a) for a, b in codes], (3, 2, 3))
    assert copied.copies.tolist() == [False, False, True]
    context, value = rng.integers(6, size=40), rng.integers(2, size=40)
    value[context > 3] |= rng.random(int((context > 3).sum())) < rng.random()
    one, other = (learn_tied(seen, context, [value], np.ones(40)) for seen in (plain, copied))
    leaf, same = one.trees.find(plain, 0), other.trees.find(copied, 0)
    assert ((leaf[:, None] == leaf) == (same[:, None] == same)).all()


def test_noise_is_not_split_on() -> None:
    """A variable that tells nothing is split on in less than one of twenty trees."""
    rng = np.random.default_rng(1)
    seen = contexts([(a, b) for a in range(3) for b in range(2)], (3, 2))
    split = 0
    for _ in range(100):
        context = rng.integers(6, size=200)
        tied = learn_tied(seen, context, [rng.integers(2, size=200)], np.ones(200))
        split += bool((tied.trees.variable != LEAF).any())
    assert split < 5


def test_contexts_never_seen_stop_where_their_like_ends() -> None:
    """Split by all values of x0, of which 2 was never seen: the root is all that is known."""
    trees = Trees(
        np.array([0, LEAF, LEAF]), np.array([EVERY] * 3), np.array([0, 0, 0]),
        np.array([0, 0, 1]), (np.array([0]), np.array([0]), np.array([1.0])), np.array([0]),
    )  # fmt: skip
    assert trees.find(contexts([(0,), (1,), (2,)], (3,)), 0).tolist() == [1, 2, 0]


def test_a_variable_that_comes_first() -> None:
    seen = contexts([(0, 0), (0, 1), (1, 0), (1, 1)], (2, 2))
    context = np.arange(4)
    value = context % 2  # what x1 is
    tied = learn_tied(seen, context, [value], np.full(4, 50.0), "x0")
    assert tied.trees.variable[0] == 0
    free = learn_tied(seen, context, [value], np.full(4, 50.0), "x0", if_relevant=True)
    assert free.trees.variable[0] == 1


def test_outcomes_never_shared_add_up() -> None:
    """Each context was seen twice: no test has any power, but all together are telling."""
    rest = np.repeat(np.arange(10), 2)  # pairs of contexts that differ in one variable
    context = list(range(20))
    assert dependent_components(entries(context, [c % 2 for c in context]), rest) == [0]
    assert dependent_components(entries(context, [0] * 20), rest) == []
    rng = np.random.default_rng(0)
    context = rng.integers(20, size=2000).tolist()
    noise = Entries.count(np.array(context), [rng.integers(2, size=2000)], np.ones(2000))
    assert dependent_components(noise, rest) == []
