"""Expressions over the columns of a table: "-cost", "status in (discharged, died)".

They are written as in Python and parsed by `ast`. Accepted are numbers, names, quoted text, + - *,
division by a constant, comparisons, `in`, `is missing`, `and`, `or`, `not`. A name is a column; a
name that is compared with a column, and is no column itself, is text. A column whose name is not a
word is written in backquotes.

A missing value makes what is computed from it missing, unless the rest decides: `false and x` is
false. `reward or 0` is 0 where the reward is missing. A condition used as a number is 1 or 0, and 0
if it is missing.

`rspmn.expressions.evaluate` evaluates them, by an `Algebra`: that of arrays is `ArrayAlgebra`, that
of engines is in `rspmn.data.sources.engine_columns`.
"""

from rspmn.expressions.formula import summed
from rspmn.expressions.parse import Expression, expression_of, is_computed, missing_of

__all__ = ["Expression", "expression_of", "is_computed", "missing_of", "summed"]
