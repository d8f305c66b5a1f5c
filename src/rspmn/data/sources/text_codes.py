"""Text of few values as numbers, while its rows are paired and counted.

Parquet stores such text as a dictionary, of which DuckDB codes each entry once; text itself would
be copied and compared for every row. Which values there are is seen at a glance at the heads of
files. One that is not among them has no code, and shows: then rows are counted without codes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rspmn.data.sources.row_ranges import Part
from rspmn.data.sources.sql import literal

#: Text of at most so many values is coded.
FEW = 64
#: Look at so many rows at the heads of so many parts.
GLANCE, HEADS = 10_000, 3


@dataclass(frozen=True)
class Codes:
    """The values of columns, by the columns' names; nothing is a value, too."""

    values: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def at_a_glance(cls, names: Sequence[str], rows: str, parts: Sequence[Part]) -> "Codes":
        """Look at the heads of some parts, for columns of text in a query of their rows."""
        if not names:
            return cls()
        seen: dict[str, set[str]] = {name: set() for name in names}
        lists = ", ".join(f"list(DISTINCT {name})" for name in names)
        head = f"SELECT {', '.join(names)} FROM ({rows}) LIMIT {GLANCE}"
        for part in parts[:: -(-len(parts) // HEADS)]:
            ((*found,),) = part.ask(f"SELECT {lists} FROM ({head})")
            for name, values in zip(names, found, strict=True):
                seen[name] |= {value for value in values or () if value is not None}
        return cls({name: sorted(found) for name, found in seen.items() if len(found) <= FEW})

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def code(self, name: str, cell: str) -> str:
        """Return the code of a cell of a column, both as SQL has them; null if it is unknown."""
        return f"CAST(list_position({self._list(name)}, {cell}) AS INTEGER)"

    def cell(self, name: str, code: str) -> str:
        """Return the cell of a column that a code stands for."""
        return f"{self._list(name)}[{code}]"

    def _list(self, name: str) -> str:
        return f"[{', '.join([*map(literal, self.values[name]), 'NULL'])}]"
