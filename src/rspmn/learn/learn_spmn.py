"""LearnSPMN (Melibari et al.) on weighted rows: from past decisions to the best ones.

The order of the schema is followed: a decision makes a max node over the values seen. In an
information set, what has nothing to do with anything that follows becomes a factor; where nothing
is left to factor out, the rows are divided into a sum node. The last set, with the utility, is
left to LearnSPN.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from rspmn.learn.config import LearnConfig, LearnInfo, Report
from rspmn.learn.learn_spn import components, grow_spn
from rspmn.learn.learner import Learner
from rspmn.learn.means import mean_p_value
from rspmn.learn.outlook import Outlook, Seen, decision_counts, lacks_choice, outlook
from rspmn.learn.rows import Rows, joined, read_rows
from rspmn.schema import Schema
from rspmn.spmn import SPMN, factorised

__all__ = ["learn_spmn"]

#: A variable of more values than this is not looked at as a condition: strata would be too small.
MOST_GIVEN = 200


def learn_spmn(
    source: object,
    schema: Schema,
    config: LearnConfig | None = None,
    rng: np.random.Generator | int = 0,
    *,
    weights: str | None = None,
    report: Report | None = None,
) -> tuple[SPMN, LearnInfo]:
    """Learn a sum-product-max network from a table of past decisions.

    Parameters
    ----------
    source
        A pandas, Polars or PyArrow table or a mapping of names to arrays: one row per decision
        problem, with the variables of the schema.
    schema
        The variables, in the order in which they become known.
    config
        How to learn; `LearnConfig()` if not given.
    rng
        A generator or seed, for tests and clusterings that draw at random.
    weights
        A column that says how often each row occurred.
    report
        Is called with a `Progress` now and then.

    >>> table = {"weather": ["wet", "wet", "dry", "dry"] * 50,
    ...          "umbrella": [True, False, True, False] * 50,
    ...          "mood": [0.0, -5.0, 1.0, 2.0] * 50}
    >>> schema = Schema([["weather"], ["umbrella"]], ["umbrella"], "mood")
    >>> model, info = learn_spmn(table, schema)
    >>> model.meu()                                   # half the time 0, half the time 2
    1.0 (from 100 logged steps)
    >>> [best.value for best in model.best_decisions({"weather": "wet"})]
    [True]
    """
    config = config or LearnConfig()
    rows, known = read_rows(source, schema, config.bins, weights)
    learner = Learner(config, np.random.default_rng(rng), rows, known.utility, report)
    root = _information(learner, known, rows, 0, known.information_sets[0], 0)
    network = learner.builder.build(root)
    info = learner.info
    info.nodes, info.edges, info.seconds = len(network), network.num_edges, learner.seconds()
    background = factorised([learner.leaf(rows, n) for n in known.state_variables], learner.builder)
    return SPMN(known, network, background, rows.total), info


def _information(
    learner: Learner, schema: Schema, rows: Rows, place: int, names: tuple[str, ...], depth: int
) -> int:
    """Add what is left of information set number `place`, and all that follows it."""
    if place == len(schema.decisions):
        root = grow_spn(learner, rows, (*names, schema.utility), depth)
        learner.done_with(rows.total)
        return root
    if not names:
        return _decision(learner, schema, rows, place, depth)
    if learner.out_of_budget(depth):
        return _with_factors(learner, schema, rows, place, learner.leaves(rows, names), depth)
    config = learner.config
    follows = outlook(rows, schema, place, config.given_decisions, config.unavailable_from)
    telling = _telling(learner, rows, names, follows)
    linked = _linked(learner, rows, names, telling)
    free = tuple(name for name in names if name not in linked)
    if free:
        factors = _factors(learner, rows, free, depth)
        if linked:
            factors.append(_information(learner, schema, rows, place, linked, depth))
            return learner.product(factors)
        return _with_factors(learner, schema, rows, place, factors, depth)
    clusters = learner.config.clustering(rows, telling, follows, learner.rng)
    if len(clusters) < 2:  # nothing is left to divide by
        factors = _factors(learner, rows, names, depth)
        return _with_factors(learner, schema, rows, place, factors, depth)
    learner.done_with(rows.total - sum(part.total for part in clusters))  # rows left out
    children = [_information(learner, schema, part, place, names, depth + 1) for part in clusters]
    return learner.mixture(clusters, children)


def _decision(learner: Learner, schema: Schema, rows: Rows, place: int, depth: int) -> int:
    """Add a max node over the values of the next decision that were seen."""
    decision = schema.decisions[place]
    codes = rows.codes(decision)
    domain = rows.table.columns[decision].domain
    branches = {
        domain[code]: _information(
            learner, schema, rows.where(codes == code), place + 1,
            schema.information_sets[place + 1], depth,
        )
        for code in np.unique(codes).tolist()
    }  # fmt: skip
    return learner.builder.max(decision, branches)


def _with_factors(
    learner: Learner, schema: Schema, rows: Rows, place: int, factors: Sequence[int], depth: int
) -> int:
    """Add the next decision beside what was factored out before it."""
    return learner.product([*factors, _decision(learner, schema, rows, place, depth)])


def _factors(learner: Learner, rows: Rows, names: tuple[str, ...], depth: int) -> list[int]:
    """Add variables that matter for nothing that follows, dependent ones together."""
    strata = np.zeros(len(rows), dtype=np.int64)
    groups = components(names, learner.test(rows, names, names, strata).dependent)
    return [grow_spn(learner, rows, group, depth) for group in groups]


def _linked(
    learner: Learner, rows: Rows, names: tuple[str, ...], telling: Sequence[str]
) -> tuple[str, ...]:
    """Return the variables that tell about what follows, and those that depend on them."""
    if not telling or len(telling) == len(names):
        return tuple(telling)
    strata = np.zeros(len(rows), dtype=np.int64)
    groups = components(names, learner.test(rows, names, names, strata).dependent)
    kept = {name for group in groups if set(group) & set(telling) for name in group}
    return tuple(name for name in names if name in kept)


def _telling(
    learner: Learner, rows: Rows, names: tuple[str, ...], follows: Outlook
) -> tuple[str, ...]:
    """Return the variables that tell about what follows: alone, given another, or all together."""
    found = dict.fromkeys(names, False)
    for seen in follows.seen:
        dependent = learner.test(rows, names, seen.names, seen.strata).dependent
        for name, pairs in zip(names, dependent, strict=True):
            found[name] |= bool(pairs.any())
    if learner.config.given_decisions:  # the paper looks no further
        _look_at_means(learner, rows, follows, found)
        _look_at_choices(rows, follows, found)
        _look_given_another(learner, rows, follows, found)
        _look_at_all_together(learner, rows, follows, found)
    return tuple(name for name in names if found[name])


def _look_at_means(learner: Learner, rows: Rows, follows: Outlook, found: dict[str, bool]) -> None:
    """Mark variables that change the mean of the utility: bins do not see how large its tail is."""
    level = learner.config.mean_alpha / len(found)
    for name in found:
        p = mean_p_value(rows, name, str(learner.utility), follows.seen[-1].strata)
        found[name] |= p < level


def _look_at_choices(rows: Rows, follows: Outlook, found: dict[str, bool]) -> None:
    """Mark variables, and pairs of them, with values at which a choice is unavailable."""
    for choice in follows.choices:
        for name in found:
            found[name] |= _lacks(rows, name, choice, follows.unavailable_from)
        for one, other in combinations([n for n in found if not found[n]], 2):
            together, name = joined(rows, [one, other])
            if _lacks(together, name, choice, follows.unavailable_from):
                found[one] = found[other] = True


def _look_given_another(
    learner: Learner, rows: Rows, follows: Outlook, found: dict[str, bool]
) -> None:
    """Mark variables that tell something given another: the utility may depend on X xor Z.

    The other may be in the same set, or be seen later but before a decision.
    """
    known_later = [name for seen in follows.seen[:-1] for name in seen.names]
    for given in (*found, *known_later):
        if learner.out_of_time() or rows.table.sizes[given] > MOST_GIVEN:
            continue
        left = [name for name in found if not found[name] and name != given]
        for seen in follows.seen if left else ():
            targets = [name for name in seen.names if name != given]
            strata = _refined(rows, given, seen)
            dependent = learner.test(rows, left, targets, strata).dependent
            for name, pairs in zip(left, dependent, strict=True):
                found[name] |= bool(pairs.any())


def _look_at_all_together(
    learner: Learner, rows: Rows, follows: Outlook, found: dict[str, bool]
) -> None:
    """If nothing was found, mark all variables if all together tell something."""
    if any(found.values()) or len(found) < 3:
        return
    together, name = joined(rows, list(found))
    tests = [learner.test(together, [name], s.names, s.strata) for s in follows.seen]
    if any(bool(test.dependent.any()) for test in tests):
        found.update(dict.fromkeys(found, True))


def _refined(rows: Rows, name: str, seen: Seen) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the strata of what is seen, each divided by the value of one more variable."""
    size = rows.table.sizes[name] + 1
    return seen.strata * size + rows.codes(name) + 1


def _lacks(rows: Rows, name: str, choice: Seen, least: float) -> bool:
    """Say whether at some value of a variable a choice is missing that was to be expected."""
    tables = decision_counts(rows, name, choice)
    return any(bool(lacks_choice(counts, least).any()) for _, counts in tables)
