"""Expectations under products of factors, by whichever way takes less."""

from rspmn.circuit import LatentFactors
from rspmn.data.distinct import distinct_rows
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
    contraction, (distinct, _) = Contraction(factors, rows), distinct_rows(rows)
    edges = SPARSE * len(distinct) * mean_edges(factors, distinct)
    return Joined(factors, rows) if edges < contraction.work else contraction
