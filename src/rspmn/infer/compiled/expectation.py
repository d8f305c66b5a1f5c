"""Expectations under products of factors, by whichever way takes less."""

from rspmn.circuit import LatentFactors
from rspmn.data.distinct import distinct_rows
from rspmn.infer.compiled.contraction import Contraction, elimination_order
from rspmn.infer.compiled.joined import Joined, mean_edges
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
    edges = mean_edges(factors, rows, FEW)
    if edges < FEW and _takes_more(factors, rows, edges):
        return Joined(factors, rows)
    contraction = Contraction(factors, rows)
    most = contraction.work / max(SPARSE * len(contraction.distinct), 1e-9)
    few = mean_edges(factors, contraction.distinct, most) < most
    return Joined(factors, rows) if few else contraction


def _takes_more(factors: LatentFactors, rows: Ints, edges: float) -> bool:
    """Return whether to contract would take more than so many edges of each product.

    That is mostly seen before the order of components is complete.
    """
    distinct, cells = distinct_rows(rows)[0], distinct_rows(factors.classes)[0]
    return elimination_order(distinct, cells, SPARSE * edges * len(distinct)) is None
