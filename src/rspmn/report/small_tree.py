"""A policy as a small tree, for reading: what is decided where, in words.

States are weighed by how often the log visited them. The tree is an abridgement: the share of
logged steps in which it says what the policy says stands beside it.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rspmn.export.state_tables import OTHER, Cell, Stage
from rspmn.export.tree import Node, abridge, grown, is_number
from rspmn.types import Array
from rspmn.values import Value

#: The most leaves that are read at a glance.
LEAVES = 12
#: A question must make so much of the steps agree more, or it is not asked.
LEAST_GAIN = 0.004
#: Of a variable with more numbers than this, only so many are asked about.
MOST_NUMBERS = 64


def small_tree(
    columns: Mapping[str, Sequence[Value | None]], decided: Sequence[str], weights: Array
) -> dict[str, Any]:
    """Return a tree of questions as nested mappings, and how often it agrees with the rows.

    `columns` are the variables of states, None where a state has several values.

    >>> tree = small_tree({"x": [1, 2, 8, 9]}, ["a", "a", "b", "b"], np.ones(4))
    >>> tree["question"], tree["yes"]["decision"], tree["no"]["decision"], tree["agrees"]
    ('x is at most 2', 'a', 'b', 1.0)
    """
    names, chosen = np.unique(np.array(decided, dtype=object), return_inverse=True)
    coded = [_cells(column) for column in columns.values()]
    cells = dict(zip(columns, (own for own, _ in coded), strict=True))
    codes = np.array([codes for _, codes in coded], dtype=np.int64).T.reshape(len(chosen), -1)
    stage = Stage(cells, (), codes, [(name,) for name in names], chosen, None)
    root = grown(stage, 4 * LEAVES, weights=weights)
    abridge(root, LEAVES, LEAST_GAIN * float(weights.sum()))
    agrees, leaves = root.agreement(), len([*root.leaves()])
    return {**_as_dict(root, names.tolist()), "agrees": agrees, "leaves": leaves}


def _cells(column: Sequence[Value | None]) -> tuple[tuple[Cell, ...], list[int]]:
    """Return the cells of a variable, and the place of each value among them."""
    values = {value for value in column if value is not None}
    if not all(map(is_number, values)):
        cells: list[Cell] = [*dict.fromkeys(OTHER if value is None else value for value in column)]
        return tuple(cells), [cells.index(OTHER if v is None else v) for v in column]
    line: list[Any] = sorted(values)  # what is between two that are asked about is the larger one
    asked = [*line[:-1][:: max(1, (len(line) - 1) // MOST_NUMBERS)], *line[-1:], math.inf]
    numbers = np.array([math.inf if value is None else value for value in column], dtype=float)
    codes = np.searchsorted(asked, numbers)
    return tuple(asked), codes.tolist()


def _as_dict(node: Node, names: Sequence[str]) -> dict[str, Any]:
    if node.yes is None or node.no is None:
        steps = float(node.counts.sum())
        share = float(node.counts.max()) / steps if steps > 0 else 0.0
        return {"decision": names[node.choice], "share": share, "steps": steps}
    yes, no = _as_dict(node.yes, names), _as_dict(node.no, names)
    return {"question": str(node.test), "yes": yes, "no": no}
