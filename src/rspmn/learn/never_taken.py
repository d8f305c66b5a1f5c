"""Where decisions were never taken, although they were to be expected."""

import numpy as np

from rspmn.availability import NeverTaken
from rspmn.data.keys import group_weights
from rspmn.learn.structure.rows import Rows
from rspmn.schema import Schema
from rspmn.types import Array, Ints

#: Variables with more values than this are not looked at.
MOST_VALUES = 200
#: So many cases are kept, those that were expected most often.
MOST_KEPT = 1000
#: What is said was expected at least so often, by its share in the nodes of those steps.
LEAST_EXPECTED = 10.0
#: At most so many pairs of interface nodes and values, or nodes and decisions, are counted.
MOST_CELLS = 4_000_000


def never_taken(rows: Rows, schema: Schema, here: Ints, nodes: int) -> tuple[NeverTaken, ...]:
    """Return the values of decisions that were never taken at some value of a variable.

    `rows`: the steps. `schema`: their variables. `here`: the interface node of each; below 0 if
    none [rows]. `nodes`: the number of interface nodes.
    """
    found: list[NeverTaken] = []
    rows, here = rows.where(np.flatnonzero(here >= 0)), here[here >= 0]
    for decision in schema.decisions:
        before = schema.known_before(decision)
        for name in schema.state_variables:
            size = rows.table.sizes[name]
            if name in before and name not in rows.table.ordered and size <= MOST_VALUES:
                found += _of_variable(rows, decision, name, here, nodes)
    if len(found) <= MOST_KEPT:
        return tuple(found)
    return tuple(sorted(found, key=lambda never: -never.expected)[:MOST_KEPT])


def _of_variable(rows: Rows, decision: str, name: str, here: Ints, nodes: int) -> list[NeverTaken]:
    values, choices = rows.table.sizes[name], rows.table.sizes[decision]
    if nodes * max(values, choices) > MOST_CELLS:
        return []
    known = rows.codes(name) >= 0
    value, choice = (rows.codes(n)[known].astype(np.int64) for n in (name, decision))
    node, weights = here[known], rows.weights[known]

    def counts(one: Ints, other: Ints, size: int, width: int) -> Array:  # [size, width]
        return group_weights(one * width + other, weights, size * width).reshape(size, width)

    never = counts(value, choice, values, choices) == 0
    if not never.any():
        return []
    made = counts(node, choice, nodes, choices)
    share = made / np.maximum(made.sum(axis=1, keepdims=True), 1e-300)
    expected = counts(value, node, values, nodes) @ share  # [values, choices]
    lacks = never & (expected >= LEAST_EXPECTED)
    domain, options = rows.table.columns[name].domain, rows.table.columns[decision].domain
    return [
        NeverTaken(decision, options[b], name, domain[a], float(expected[a, b]))
        for a, b in zip(*(axis.tolist() for axis in np.nonzero(lacks)), strict=True)
    ]
