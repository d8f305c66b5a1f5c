"""A policy as JSON."""

import json
import math
from typing import Any

from rspmn.export.scores import scores_of
from rspmn.export.state_tables import Stage, is_finite, stages_of
from rspmn.export.tree import Node, grown
from rspmn.infer.base_policy import BasePolicy


def to_json(policy: BasePolicy, t: int = 0) -> str:
    """Return what a policy decides at time t as JSON.

    It has the stages of a step, each with the variables that are known, their values, its decisions
    and a tree: `{"if": [variable, "is" | "at most" | "missing", value], "then": …, "else": …}`,
    whose leaves are lists of decisions, null in states that were never seen. Where states are
    numbers, it has the numbers of the formula, `rspmn.export.scores.Scores`.

    Examples
    --------
    >>> from rspmn.envs.paper_grid import paper_grid
    >>> json.loads(to_json(paper_grid().policy(horizon=4)))["stages"][0]["decisions"]
    ['action']
    """
    facts: dict[str, Any] = {"horizon": policy.horizon, "t": t, "discount": policy.discount}
    if is_finite(policy):
        facts["stages"] = [_stage(stage) for stage in stages_of(policy, t)]
    else:
        facts["scores"] = scores_of(policy, t).to_dict()
    return json.dumps(_finite(facts)) + "\n"


def _finite(facts: Any) -> Any:
    """Return facts as JSON has them: bounds that are infinite are null."""
    if isinstance(facts, dict):
        return {name: _finite(fact) for name, fact in facts.items()}
    if isinstance(facts, list | tuple):
        return [_finite(fact) for fact in facts]
    return None if isinstance(facts, float) and math.isinf(facts) else facts


def _stage(stage: Stage) -> dict[str, Any]:
    return {
        "known": {
            name: [cell for cell in cells if isinstance(cell, str | int | float)]
            for name, cells in stage.cells.items()
        },
        "decisions": list(stage.decisions),
        "tree": _tree(stage, grown(stage)),
    }


def _tree(stage: Stage, node: Node) -> Any:
    if node.test is None or node.yes is None or node.no is None:
        choice = stage.choices[node.choice]
        return None if choice is None else list(choice)
    return {"if": list(node.test), "then": _tree(stage, node.yes), "else": _tree(stage, node.no)}
