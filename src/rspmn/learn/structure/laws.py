"""Laws as columns: where each decision that the schema restricts is available.

States in which different decisions are available are different. So a law is one more column of the
rows, a function of the state, and rows are divided until it is constant.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rspmn.availability import Law, label
from rspmn.data.columns import Column
from rspmn.errors import DataError
from rspmn.learn.structure.contingency import contingency
from rspmn.learn.structure.rows import Rows
from rspmn.schema import Kind, Schema
from rspmn.types import Array, Bools


def law_columns(schema: Schema, columns: Mapping[str, Column], counts: Array) -> dict[str, Column]:
    """Return a column for each law of a schema; rows that break one are refused."""
    found = {}
    for law in schema.laws:
        holds = law.holds({name: columns[name].for_expressions() for name in law.variables})
        _refuse_broken(law, columns[law.decision], holds, counts)
        found[law.column] = Column(Kind.BOOLEAN, holds.astype(np.int32), (False, True))
    return found


def _refuse_broken(law: Law, made: Column, holds: Bools, counts: Array) -> None:
    taken = [code for code, value in enumerate(made.domain) if label(value) == law.value]
    broken = np.isin(made.data, taken) & ~holds
    if broken.any():
        raise DataError(
            f"{law}, but it occurs in {counts[broken].sum():g} other steps: correct the "
            "schema's condition, or the log"
        )


@dataclass(frozen=True, eq=False)
class Laws:
    """The laws about later decisions that do not say the same of all rows."""

    columns: tuple[str, ...] = ()
    variables: frozenset[str] = frozenset()  # that they depend on

    @classmethod
    def after(cls, rows: Rows, schema: Schema, place: int) -> "Laws":
        """Return the laws about decisions after information set number `place`."""
        later = schema.decisions[place:]
        laws = [law for law in schema.laws if law.decision in later and rows.varies(law.column)]
        return cls(
            tuple(law.column for law in laws), frozenset(n for law in laws for n in law.variables)
        )

    def tables(self, rows: Rows, name: str) -> list[Array]:  # [values, 2] each
        """Return the weight of the rows, for each value of a variable, in which a law holds."""
        strata = np.zeros(len(rows), dtype=np.int64)
        tables = (contingency(rows, (name,), (column,), strata) for column in self.columns)
        return [found.counts[0][found.left_weights > 0] for found in tables]


def law_differs(own: Array, others: Array) -> Bools:  # [groups]
    """Return which groups a law does not say the same of: it holds, or not, in only one of them.

    Parameters
    ----------
    own, others
        The weight of a value's rows in which it does not hold and in which it holds, and that of
        each group. [2], [groups, 2]
    """
    return np.asarray(((own > 0) != (others > 0)).any(axis=-1))
