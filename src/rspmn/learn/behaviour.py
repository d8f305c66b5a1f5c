"""Behaviour, learned: trees that say in which contexts decisions have the same shares."""

import math
from collections.abc import Mapping

import numpy as np

from rspmn.behaviour import Behaviour, DecisionTree, Given
from rspmn.context_trees import LEAF, Contexts
from rspmn.data.columns import Column
from rspmn.data.distinct import distinct_rows
from rspmn.learn.successors.trees import learn_tied
from rspmn.schema import Kind, Schema
from rspmn.types import Array, Ints
from rspmn.values import Value

#: Numbers have so many codes at most.
MOST_CODES = 64
#: So many codes are looked at at most, of contexts that are spread over the log.
MOST_LOOKED_AT = 5_000_000


def learn_behaviour(
    columns: Mapping[str, Column], weights: Array, schema: Schema, deadline: float = math.inf
) -> Behaviour:
    """Return the behaviour of a log: the trees of all decisions.

    Parameters
    ----------
    columns
        The variables of steps, each with a value in each row.
    weights
        How often each row occurred.
    schema
        Says which of them are decisions, and what is known before each.
    deadline
        The `time.monotonic()` after which trees grow no deeper.
    """
    trees = []
    looked_at = max(1, len(weights) * len(schema.variables))
    every = slice(None, None, -(-looked_at // MOST_LOOKED_AT))
    for decision in schema.decisions:
        rows = np.flatnonzero(~columns[decision].missing & (weights > 0))[every]
        known = {name: columns[name].take(rows) for name in schema.known_before(decision)}
        made, domain = columns[decision].data[rows], columns[decision].domain
        trees.append(tree_of(decision, domain, known, made, weights[rows], deadline))
    return Behaviour(tuple(trees))


def tree_of(
    decision: str, domain: tuple[Value, ...], known: Mapping[str, Column], made: Ints,
    weights: Array, deadline: float = math.inf,
) -> DecisionTree:  # fmt: skip
    """Return the tree of a decision: which of its values was `made` how often, given columns."""
    coded = [(each := _given(name, column), each.codes(column)) for name, column in known.items()]
    coded = [(each, codes) for each, codes in coded if len(np.unique(codes)) > 1]
    given = [each for each, _ in coded]
    names = tuple(each.name for each in given) or ("",)
    sizes = np.array([each.size for each in given] or [1])
    codes = np.zeros((len(made), len(sizes)), dtype=np.int64)
    for k, (_, own) in enumerate(coded):
        codes[:, k] = own
    distinct, context = distinct_rows(codes)
    ordered = frozenset(each.name for each in given if each.borders)
    contexts = Contexts(names, sizes, distinct, ordered)
    trees = learn_tied(contexts, context, [made.astype(np.int64)], weights, deadline=deadline).trees
    used = np.unique(trees.variable[trees.variable != LEAF])
    place = np.append(np.full(len(sizes), LEAF), LEAF)  # that of a leaf is the last
    place[used] = np.arange(len(used))
    nodes = (place[trees.variable], trees.value, trees.parent, trees.branch, *trees.cells[:2])
    return DecisionTree(
        decision, domain, tuple(given[k] for k in used.tolist()),
        *(tuple(each.tolist()) for each in (*nodes, trees.cells[2])),
    )  # fmt: skip


def _given(name: str, column: Column) -> Given:
    """Return the codes of a variable's values; of many numbers, bins of equal weight."""
    if column.kind in (Kind.CATEGORICAL, Kind.BOOLEAN):
        return Given(name, values=column.domain)
    numbers = column.numbers()
    distinct = np.unique(numbers[~np.isnan(numbers)])
    if len(distinct) > MOST_CODES:
        shares = np.arange(1, MOST_CODES) / MOST_CODES
        numbers = np.quantile(numbers[~np.isnan(numbers)], shares, method="lower")
        distinct = np.append(np.unique(numbers), np.inf)
    return Given(name, borders=tuple(distinct[:-1].tolist()))
