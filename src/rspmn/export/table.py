"""A policy as CSV."""

import csv
import io

import numpy as np

from rspmn.export.state_tables import Stage, is_finite, stages_of
from rspmn.infer.act_many import node_table
from rspmn.infer.base_policy import BasePolicy


def to_csv(policy: BasePolicy, t: int = 0) -> str:
    """Return what a policy decides at time t in each state, as CSV.

    There is a row for each state that the model knows, with nothing missing; `rspmn evaluate
    --policy FILE` reads it. Where states are numbers, there is a row for each interface node.

    Examples
    --------
    >>> from rspmn.envs.paper_grid import paper_grid
    >>> print(to_csv(paper_grid().policy(horizon=4)).splitlines()[:2])
    ['x,y,action', '0,0,down']
    """
    if is_finite(policy):
        table = known_states(stages_of(policy, t)[0])
    else:
        table = node_table(policy, t).columns()
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))
    return text.getvalue()


def known_states(stage: Stage) -> dict[str, list[object]]:
    """Return the states that a model knows, as columns, and what is decided in them."""
    known = np.array([choice is not None for choice in stage.choices])[stage.chosen]
    rows = np.flatnonzero(known & stage.is_complete).tolist()
    found: dict[str, list[object]] = {
        name: [cells[stage.codes[row, k]] for row in rows]
        for k, (name, cells) in enumerate(stage.cells.items())
    }
    for k, decision in enumerate(stage.decisions):
        found[decision] = [(stage.choices[stage.chosen[row]] or ())[k] for row in rows]
    return found
