"""Random models whose S_L are factored, and the same models multiplied out."""

import numpy as np

from random_models import simplex
from rspmn import RSPMN, Schema
from rspmn.circuit import Categorical, LatentFactors, NetworkBuilder
from rspmn.circuit.rewrite import graft
from rspmn.end_nodes import end_root, weighted_top
from rspmn.values import UNKNOWN, Value


def random_factors(
    rng: np.random.Generator, states: int, components: int, more: int = 0, rows: int = 3
) -> LatentFactors:
    """Return factors of some interface nodes, each of one cell or more; `more` have none."""
    sizes = rng.integers(2, 4, components)
    while np.prod(sizes) < states:
        sizes[rng.integers(components)] += 1
    cells = rng.permutation(int(np.prod(sizes)))
    to = np.concatenate([np.arange(states), rng.integers(0, states, 2 * states)])[: len(cells)]
    classes = np.stack(np.unravel_index(cells[: len(to)], sizes), axis=1)
    tables = tuple(
        np.array([simplex(rng, int(size)) for _ in range(rows)]) for size in sizes.tolist()
    )
    return LatentFactors(states + more, classes, to, np.ones(len(to)), tables)


def random_factored(
    rng: np.random.Generator, states: int = 6, components: int = 3, frontier: bool = False
) -> RSPMN:
    """Return a model with counted latents, factored ones, and sums of both below its decisions.

    With `frontier`, no decision is known in the last state.
    """
    schema = Schema([["x"], ["a"]], ["a"], "u")
    factors, b = random_factors(rng, states, components, more=1), NetworkBuilder()

    def then() -> int:
        rows = [int(rng.integers(0, len(table))) for table in factors.tables]
        spread = b.factored_latents(factors, rows)
        if rng.random() < 0.3:
            return spread
        children = [b.latent(int(rng.integers(0, states + 1))), spread]
        return b.sum(children, simplex(rng, 2))

    roots = []
    for x in range(states):
        offered: tuple[Value, ...] = ("stay", "go", "wait")[: int(rng.integers(1, 4))]
        if frontier and x == states - 1:
            offered = (UNKNOWN,)
        utilities = [b.utility("u", float(rng.integers(-3, 4)), 5.0, 1.0) for _ in offered]
        branches = {
            action: b.product([utility, then()])
            for action, utility in zip(offered, utilities, strict=True)
        }
        roots.append(b.product([b.leaf("x", Categorical.certain(x)), b.max("a", branches)]))
    roots.append(end_root(b, schema, states))
    visits = (*map(float, range(1, states + 1)), 0.0)
    return RSPMN(schema, weighted_top([*simplex(rng, states), 0.0]), b.build(*roots), visits)


def multiplied_out(model: RSPMN) -> RSPMN:
    """Return the same model with sums over latents instead of factored ones."""
    b = NetworkBuilder()
    placed = graft(b, model.template, rename=None, latent=b.latent)
    roots = [place for root in model.template.roots if (place := placed[root]) is not None]
    return RSPMN(model.schema, model.top, b.build(*roots), model.visits)
