"""What goes wrong, by who has to mend it.

Every message says which object, what was expected, what was found and what to do
next. All of them are `ValueError`, so a caller who does not care need not import them.
"""

import warnings
from collections.abc import Iterable
from difflib import get_close_matches


class RspmnError(ValueError):
    """The base of every error that rspmn raises on purpose."""


class SchemaError(RspmnError):
    """The schema contradicts itself."""


class DataError(RspmnError):
    """The data do not fit the schema, or leave open what must be known."""


class CircuitError(RspmnError):
    """A node, network or model that would be meaningless."""


class EvidenceError(RspmnError):
    """A query names something that the model does not have."""


class ConvergenceError(RspmnError):
    """Values without a horizon that do not settle."""


class ModelFileError(RspmnError):
    """A model file that cannot be read, or holds a model that is not valid."""


class MissingExtraError(RspmnError, ImportError):
    """A query that needs an optional package."""


def did_you_mean(name: object, valid: Iterable[object]) -> str:
    """Name the valid word nearest to a wrong one, or list them all.

    >>> did_you_mean("utilty", ["order", "decisions", "utility"])
    "did you mean 'utility'?"
    >>> did_you_mean("q", ["x", "y"])
    "expected one of 'x', 'y'"
    """
    words = [str(word) for word in valid]
    near = get_close_matches(str(name), words, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    if not words:
        return "there are none"
    return "expected one of " + ", ".join(repr(word) for word in words)


def no_column(what: str, name: str, names: Iterable[str]) -> DataError:
    """Return the error of a table without a column that is asked for."""
    return DataError(f"no {what} {name!r} in the table: {did_you_mean(name, names)}")


def no_rows() -> DataError:
    """Return the error of a table without rows."""
    return DataError("the table has no rows")


def warn_renamed(old: str, new: str) -> None:
    """Warn the caller of the function that calls this that it has a new name."""
    message = f"{old} is now called {new}; the old name will be removed in the next release"
    warnings.warn(message, DeprecationWarning, stacklevel=3)
