"""From a template to the matrices of its Bellman update."""

from typing import Any

import numpy as np

from rspmn.circuit import FactoredLatents, Latent, Max, Network, Utility
from rspmn.errors import CircuitError
from rspmn.infer.branches import Context
from rspmn.infer.compiled.bellman import Bellman, SharedLatents
from rspmn.infer.compiled.expectation import expectation_of_nodes
from rspmn.infer.compiled.factor_rows import rows_by_factors
from rspmn.infer.compiled.linear_forms import Forms, Level
from rspmn.infer.criterion import TIE
from rspmn.types import Ints
from rspmn.values import UNKNOWN

#: Matrices of at most so many numbers are stored whole: products with them start faster.
DENSE = 20_000


def compile_bellman(template: Network, unknown: int | None) -> Bellman:
    """Compile a template; `unknown` is the interface node of unknown successors."""
    arrays = template.arrays
    interfaces, maxes = len(template.roots), arrays.of_kind(Max)
    factored, spread = _factored(template, unknown)
    decisions = arrays.heights([Max])[maxes]  # at and below each max node
    by_level = [maxes[decisions == count] for count in np.unique(decisions).tolist()]
    order = np.concatenate([spread, *by_level]).astype(np.int64)
    forms = _linear_forms(template, order)
    context = Context(template)
    unknown_values = np.array([value is UNKNOWN for value in arrays.values], dtype=bool)
    levels, place = [], interfaces + len(spread)
    for nodes in by_level:
        edges, starts = arrays.edges_of(nodes)
        counts = np.diff(np.append(starts, len(edges)))
        untried = unknown_values[arrays.choice[edges]] & np.repeat(counts == 1, counts)
        slots = slice(place, place + len(nodes))
        branches = context.branches_of(nodes, starts)
        rows = _forms(forms[arrays.children[edges]])
        levels.append(Level(nodes, slots, rows, starts, untried, branches))
        place += len(nodes)
    has_edge = unknown is not None or any(bool(level.untried.any()) for level in levels)
    roots = _forms(forms[list(template.roots)])
    return Bellman(interfaces, unknown, tuple(levels), roots, has_edge, factored)


def _factored(template: Network, unknown: int | None) -> tuple[tuple[SharedLatents, ...], Ints]:
    """Return the factored latents of a template, and their nodes in the order of their places."""
    found, order, place = [], [np.zeros(0, np.int64)], len(template.roots)
    latents = template.arrays.of_kind(FactoredLatents)
    for factors, nodes, rows in rows_by_factors(template, latents):
        if unknown is not None and (factors.to == unknown).any():
            raise CircuitError(
                f"FactoredLatents lead to interface node {unknown}, of unknown successors: "
                "factors are of known states only"
            )
        slots = slice(place, place + len(nodes))
        found.append(SharedLatents(slots, expectation_of_nodes(factors, rows)))
        order.append(nodes)
        place = slots.stop
    return tuple(found), np.concatenate(order)


def _forms(rows: Any) -> Forms:
    """Return rows of linear forms; the last column is what is earned."""
    matrix, earned = rows[:, :-1], rows[:, [-1]].toarray().ravel()
    rest = 1.0 - np.asarray(matrix.sum(axis=1)).ravel()
    rest[np.abs(rest) < TIE] = 0.0
    return Forms(_compact(matrix), rest, earned)


def _linear_forms(template: Network, order: Ints) -> Any:
    """Return every node as a linear form, sparse [nodes, unknowns + 1]; the last is constant."""
    from scipy.sparse import coo_array

    arrays, interfaces = template.arrays, len(template.roots)
    latents, utilities = arrays.of_kind(Latent), arrays.of_kind(Utility)
    means, which = arrays.utilities[arrays.item[utilities], 1], arrays.item[latents]
    constant = interfaces + len(order)
    rows = np.concatenate([latents, order, utilities])
    columns = np.concatenate(
        [which, interfaces + np.arange(len(order)), np.full(len(utilities), constant)]
    )
    numbers = np.concatenate([np.ones(len(latents) + len(order)), means])
    shape = (len(arrays.kind), constant + 1)
    own = coo_array((numbers, (rows, columns)), shape=shape).tocsr()
    linear, forms, passed = arrays.linear(), own, own
    while passed.nnz:  # once for each layer of sums and products between two max nodes
        passed = linear @ passed
        forms = forms + passed
    return forms


def _compact(matrix: Any) -> Any:
    return matrix.toarray() if matrix.shape[0] * matrix.shape[1] <= DENSE else matrix.tocsr()
