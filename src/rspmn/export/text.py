"""A policy as a decision tree that people read."""

from itertools import pairwise, product

import numpy as np

from rspmn.circuit import Leaf
from rspmn.errors import EvidenceError
from rspmn.export.scores import variables_of
from rspmn.export.state_tables import (
    OTHER,
    Cell,
    Stage,
    decided,
    described,
    is_finite,
    stages_of,
)
from rspmn.export.tree import Node, grown
from rspmn.infer.base_policy import BasePolicy
from rspmn.values import Mark, show

#: Leaves of the tree of a policy over numbers, and states that it is fitted to.
LEAVES, POINTS = 32, 20_000


def to_tree(policy: BasePolicy, t: int = 0, leaves: int | None = None) -> str:
    """Return what a policy decides at time t as a decision tree, in words.

    It is about states that the model knows, with nothing missing.

    Parameters
    ----------
    policy, t
        The policy, and the time step.
    leaves
        At most so many leaves; then the head says in how many states the tree is right. By default
        all that are needed or, where states are numbers, 32.

    Examples
    --------
    >>> from rspmn.envs.paper_grid import paper_grid
    >>> print(to_tree(paper_grid().policy(horizon=4)))
    The decisions of a policy at step 0 of 4.
    <BLANKLINE>
    action, by x, y:
    x is at most 0?
      yes: y is at most 0?
           yes: down
           no:  right
      no:  down
    <BLANKLINE>
    """
    finite = is_finite(policy)
    stages = stages_of(policy, t) if finite else [_grid(policy, t)]
    most = leaves if finite or leaves is not None else LEAVES
    lines = [described(policy, t)]
    for stage in stages:
        known = np.array([choice is not None for choice in stage.choices])[stage.chosen]
        root = grown(stage, most, known & stage.is_complete)
        share = root.agreement()
        lines += ["", f"{', '.join(stage.decisions)}, by {', '.join(stage.cells)}:"]
        if share < 1:
            lines.append(f"(agrees with the policy in {share:.1%} of {len(root.states)} states)")
        lines += _lines(stage, root)
    return "\n".join(lines) + "\n"


def _lines(stage: Stage, node: Node) -> list[str]:
    if node.test is None or node.yes is None or node.no is None:
        choice = stage.choices[node.choice]
        return [", ".join(map(show, choice or ()))]
    found = [f"{node.test}?"]
    for word, below in (("yes: ", node.yes), ("no:  ", node.no)):
        first, *rest = _lines(stage, below)
        found += [f"  {word}{first}", *(f"     {line}" for line in rest)]
    return found


def _grid(policy: BasePolicy, t: int) -> Stage:
    """Return the decisions on a grid of numbers, as fine as the limit of states allows."""
    points = {name: _points(policy, name) for name in variables_of(policy)}
    while np.prod([len(each) for each in points.values()]) > POINTS:
        widest = max(points, key=lambda name: len(points[name]))
        if len(points[widest]) <= 2:
            raise EvidenceError(f"{len(points)} variables are too many for a tree")
        points[widest] = points[widest][::2]
    codes = np.array([*product(*(range(len(own)) for own in points.values()))], dtype=np.int64)
    decisions = tuple(policy.planned.together)
    return decided(policy, t, points, decisions, codes, 0)


def _points(policy: BasePolicy, name: str) -> tuple[Cell, ...]:
    """Return values of a variable: all that are listed, or numbers on and between knots."""
    listed: dict[Cell, None] = {}
    knots: set[float] = set()
    for node in policy.index.network.nodes:
        if isinstance(node, Leaf) and node.variable == name:
            atoms, pieces = node.distribution.atoms(), node.distribution.pieces()
            if atoms is not None:
                listed |= dict.fromkeys(value for value in atoms if not isinstance(value, Mark))
            else:
                span = node.distribution.span() if pieces is None else pieces[0]
                knots |= {float(value) for value in span}  # type: ignore[arg-type]
    if not knots:
        return tuple(listed) or (OTHER,)
    ordered = sorted(knots)
    between = [a + (b - a) * k / 4 for a, b in pairwise(ordered) for k in range(4)]
    return tuple(float(f"{value:.6g}") for value in [*between, ordered[-1]])
