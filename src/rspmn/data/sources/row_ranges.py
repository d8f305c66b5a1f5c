"""Parts of a log's rows that DuckDB can read at the same time, each as its rows stand."""

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import duckdb


#: What a part is called in what is asked of it.
PART = "rspmn_part"


class Part(Protocol):
    """Rows of which SQL can ask, as of a table called PART."""

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows that answer a query."""

    def table(self, query: str) -> "duckdb.DuckDBPyRelation":
        """Return what answers a query of other tables."""

    def make(self, name: str, query: str) -> None:
        """Make a table of what answers a query."""

    def drop(self, name: str) -> None:
        """Drop a table, if it was made."""


@dataclass(frozen=True, eq=False)
class OurPart:
    """Some rows of a log that a connection of our own reads."""

    connection: "duckdb.DuckDBPyConnection"
    query: str

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows that answer a query."""
        return self.connection.execute(self._of_part(query)).fetchall()

    def table(self, query: str) -> "duckdb.DuckDBPyRelation":
        """Return what answers a query of other tables."""
        return self.connection.sql(query)

    def make(self, name: str, query: str) -> None:
        """Make a table of what answers a query."""
        self.connection.execute(f"CREATE TABLE {name} AS {self._of_part(query)}")

    def drop(self, name: str) -> None:
        """Drop a table, if it was made."""
        self.connection.execute(f"DROP TABLE IF EXISTS {name}")

    def _of_part(self, query: str) -> str:
        return f"WITH {PART} AS NOT MATERIALIZED ({self.query}) SELECT * FROM ({query})"


@dataclass(frozen=True, eq=False)
class TheirPart:
    """All rows of a relation that is the caller's, as its connection is."""

    relation: "duckdb.DuckDBPyRelation"

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows that answer a query."""
        return self.table(query).fetchall()

    def table(self, query: str) -> "duckdb.DuckDBPyRelation":
        """Return what answers a query of other tables."""
        found = self.relation.query(PART, query)
        assert found is not None  # a query has an answer
        return found

    def make(self, name: str, query: str) -> None:
        """Make a table of what answers a query, a temporary one."""
        self.relation.query(PART, f"CREATE TEMP TABLE {name} AS {query}")

    def drop(self, name: str) -> None:
        """Drop a table, if it was made; in a transaction that failed it is gone."""
        import duckdb

        with suppress(duckdb.TransactionException):
            self.relation.query(PART, f"DROP TABLE IF EXISTS {name}")
