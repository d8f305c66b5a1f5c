"""Expectations under products of factors, by whichever way takes less."""

import math

from rspmn.circuit import LatentFactors
from rspmn.data.distinct import distinct_rows
from rspmn.errors import CircuitError
from rspmn.infer.compiled.cell_tree import CellTree
from rspmn.infer.compiled.contraction import Contraction, elimination_order
from rspmn.infer.compiled.joined import Joined
from rspmn.memory import KEPT
from rspmn.types import Ints

#: A multiplication in a sparse matrix takes about so many of a contraction.
SPARSE = 4.0
#: With fewer edges of a product than this, a contraction is not begun if it would take more.
FEW = 16

Expectation = Contraction | Joined


def expectation(factors: LatentFactors, rows: Ints) -> Expectation:
    """Return expectations under some products, contracted or multiplied out sparsely.

    Parameters
    ----------
    factors
        The tables, and the cells of interface nodes.
    rows
        Of each product, the row of each component's table. [products, components]
    """
    found = expectation_within(factors, rows)
    assert found is not None  # as there is no limit
    return found


def expectation_of_nodes(factors: LatentFactors, rows: Ints) -> Expectation:
    """Return expectations under the products of nodes; refuse products that lead nowhere."""
    found = expectation(factors, rows)
    if not (found.kept > 0).all():
        raise CircuitError("FactoredLatents: some rows lead to no interface node")
    return found


def expectation_within(
    factors: LatentFactors, rows: Ints, most: float = math.inf
) -> Expectation | None:
    """Return expectations as `expectation` does; None if they take more than `most` products.

    What is multiplied out is kept, and so it is only where that fits; a contraction holds little.
    """
    if not len(rows):
        return Joined(factors, rows)
    tree, distinct = CellTree(factors), distinct_rows(rows)[0]
    cells = distinct_rows(factors.classes)[0]
    edges = tree.mean_edges(rows, FEW)
    few = edges < FEW and edges * len(distinct) <= KEPT
    sparse = SPARSE * edges * len(distinct) if few else math.inf
    # that to contract takes more is mostly seen before the order of components is complete
    order = elimination_order(distinct, cells, min(sparse, most))
    if order is None and sparse <= most:
        return Joined(factors, rows)
    contraction = None if order is None else Contraction(factors, rows, order)
    work = most if contraction is None else contraction.work
    edges = min(work / SPARSE, KEPT) / max(1, len(distinct))
    few = tree.mean_edges(distinct, edges) < edges
    return Joined(factors, rows) if few else contraction
