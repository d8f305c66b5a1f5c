"""Models of numbers with soft borders: a state near a border is in several interface nodes."""

from itertools import pairwise, product

import numpy as np

from random_models import random_top, simplex
from rspmn.circuit import Leaf, NetworkBuilder, PiecewiseLinear
from rspmn.end_nodes import end_root, marked_root, unknown_root
from rspmn.model import RSPMN
from rspmn.schema import Kind, Schema
from rspmn.values import UNKNOWN


def tents(knots: list[float]) -> list[PiecewiseLinear]:
    """Return a ramp up and down around each knot: at any number their heights sum to 1."""
    found = []
    for k, knot in enumerate(knots):
        near = [(knots[k - 1], 0.0)] * (k > 0) + [(knot, 1.0)]
        near += [(other, 0.0) for other in knots[k + 1 : k + 2]]
        found.append(PiecewiseLinear.scaled(*map(tuple, zip(*near, strict=True))))
    return found


def boxes(knots: list[float]) -> list[PiecewiseLinear]:
    """Return a uniform density between each two knots."""
    return [PiecewiseLinear.scaled(pair, (1.0, 1.0)) for pair in pairwise(knots)]


def soft_schema(variables: int, decisions: int, between: bool = False) -> Schema:
    names = [f"x{k}" for k in range(variables)]
    order = [names]
    for k in range(decisions):
        order += [[f"D{k}"], [f"y{k}"] if between else []]
    kinds = dict.fromkeys(names, Kind.CONTINUOUS)
    return Schema(order, [f"D{k}" for k in range(decisions)], "u", kinds)


def soft_model(
    rng: np.random.Generator,
    knots: int,
    variables: int,
    *,
    soft: bool = True,
    cells: int = 1,
    decisions: int = 1,
    actions: int = 2,
    whole: bool = False,
    marks: bool = False,
) -> RSPMN:
    """Return a random model whose roots are sums over cells of a grid.

    Parameters
    ----------
    rng, knots, variables
        There are `knots` places of each variable, and knots ** variables cells.
    soft
        Whether cells overlap; otherwise they are boxes.
    cells
        How many cells are one root, at most.
    decisions, actions
        Of a step. Some roots do not offer some actions.
    whole
        Whether utilities are small whole numbers, so that actions tie.
    marks
        Whether some steps end the episode, some successors are unknown, and in some states no
        decision was tried.
    """
    schema = soft_schema(variables, decisions)
    b = NetworkBuilder()
    lines = [
        np.cumsum(rng.uniform(0.5, 1.5, knots + (not soft))).tolist() for _ in range(variables)
    ]
    leaves = [
        [b.leaf(f"x{v}", leaf) for leaf in (tents if soft else boxes)(line)]
        for v, line in enumerate(lines)
    ]
    grid = [b.product(list(chosen)) for chosen in product(*leaves)]
    groups = [grid[k : k + cells] for k in range(0, len(grid), cells)]
    roots = len(groups)

    def outcome() -> int:
        mean = float(rng.integers(-1, 2)) if whole else float(rng.normal())
        reached = rng.integers(0, roots, 3).tolist()
        weights = simplex(rng, 3)
        if marks:
            reached[0] = roots if rng.random() < 0.5 else reached[0]  # END
            if rng.random() < 0.3:
                reached[1] = roots + 1  # UNKNOWN
                weights = [w / 50 if k == 1 else w for k, w in enumerate(weights)]
                weights = [w / sum(weights) for w in weights]
            if rng.random() < 0.1:
                reached = [roots + 1] * 3
        latents: dict[int, float] = {}
        for interface, weight in zip(reached, weights, strict=True):
            latents[interface] = latents.get(interface, 0.0) + weight
        follows = b.sum([b.latent(i) for i in latents], list(latents.values()))
        return b.product([b.utility("u", mean, float(rng.integers(0, 9))), follows])

    def decide(place: int) -> int:
        if place == decisions:
            return outcome()
        offered = [a for a in range(actions) if rng.random() < 0.85] or [0]
        return b.max(f"D{place}", {a: decide(place + 1) for a in offered})

    made = []
    for group in groups:
        state = b.sum(group, simplex(rng, len(group)))
        if marks and rng.random() < 0.05:
            made.append(marked_root(b, schema, [state], UNKNOWN, roots + 1))
        else:
            made.append(b.product([state, decide(0)]))
    if marks:
        made += [end_root(b, schema, roots), unknown_root(b, schema, roots + 1)]
    visits = rng.integers(1, 50, len(made)).astype(float).tolist()
    if marks:
        visits[0] = 0.0
    return RSPMN(schema, random_top(rng, roots), b.build(*made), tuple(visits))


def soft_states(
    rng: np.random.Generator, model: RSPMN, count: int, missing: float = 0.0
) -> list[dict[str, float | None]]:
    """Return states between the outermost knots, and some on a knot, or a little beyond."""
    spans: dict[str, list[float]] = {}
    for node in model.template.nodes:
        if isinstance(node, Leaf) and isinstance(node.distribution, PiecewiseLinear):
            spans.setdefault(node.variable, []).extend(node.distribution.knots)

    def number(knots: list[float]) -> float:
        if rng.random() < 0.1:
            return float(rng.choice(knots))
        return float(rng.uniform(min(knots), max(knots) + 0.05))

    return [
        {n: None if rng.random() < missing else number(spans[n]) for n in sorted(spans)}
        for _ in range(count)
    ]
