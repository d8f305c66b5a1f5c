"""Distributions of one variable, as leaves have them: one file for each family.

`Categorical` serves categorical and boolean variables, single values of any kind, and END.
`IntegerHistogram` serves integers, `PiecewiseLinear` continuous variables, `StudentT` numbers of
which any may come.
"""

from rspmn.circuit.distributions.base import (
    Distribution,
    Values,
    as_numbers,
    check_simplex,
    draw_indices,
    register,
    registered,
)
from rspmn.circuit.distributions.categorical import Categorical
from rspmn.circuit.distributions.integer_histogram import IntegerHistogram
from rspmn.circuit.distributions.piecewise_linear import PiecewiseLinear
from rspmn.circuit.distributions.student_t import StudentT

__all__ = [
    "Categorical", "Distribution", "IntegerHistogram", "PiecewiseLinear", "StudentT", "Values",
    "as_numbers", "check_simplex", "draw_indices", "register", "registered",
]  # fmt: skip
