"""Expectations under products of factors, by whichever way takes less."""

from rspmn.circuit import LatentFactors
from rspmn.infer.compiled.contraction import Contraction
from rspmn.infer.compiled.joined import Joined, mean_edges
from rspmn.types import Ints

#: A multiplication in a sparse matrix takes about so many of a contraction.
SPARSE = 4.0

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
    contraction = Contraction(factors, rows)
    most = contraction.work / max(SPARSE * len(contraction.distinct), 1e-9)
    few = mean_edges(factors, contraction.distinct, most) < most
    return Joined(factors, rows) if few else contraction
