"""Columns: values coded once when they are read, and decoded when they are returned.

A discrete column holds small integers that index its domain, the sorted distinct values. A
continuous one holds its numbers. The same values in any order have the same codes.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.data.cells import Cells
from rspmn.data.distinct import distinct_integers
from rspmn.errors import DataError
from rspmn.schema import Kind
from rspmn.types import Array, Bools
from rspmn.values import Value

#: The code of a missing value. In a continuous column it is NaN.
MISSING = -1


@dataclass(frozen=True, eq=False)
class Column:
    """One variable of many steps."""

    kind: Kind
    data: NDArray[Any]  # [n]; codes, integers as narrow as can be, or float64 when continuous
    domain: tuple[Value, ...] = ()  # the value of each code, sorted; () when continuous
    #: The variance of the numbers whose mean a row holds, [n]; None if each row is one number.
    spread: Array | None = None

    def __len__(self) -> int:
        return len(self.data)

    @property
    def missing(self) -> Bools:  # [n]
        """Where values are missing."""
        missing = np.isnan(self.data) if self.kind is Kind.CONTINUOUS else self.data == MISSING
        return np.asarray(missing, dtype=bool)

    @property
    def absent(self) -> float:
        """What `data` holds where a value is missing."""
        return np.nan if self.kind is Kind.CONTINUOUS else MISSING

    @property
    def is_coded(self) -> bool:
        """Whether the kind was given or seen; for a column without any value it is a guess."""
        return self.kind in (Kind.CONTINUOUS, Kind.BOOLEAN) or bool(self.domain)

    def take(self, rows: NDArray[Any]) -> "Column":
        """Return some of the rows; -1 gives a missing value."""
        if len(self.data) == 0:
            return self.without_values(len(rows))
        taken = self.data[rows]
        nowhere = rows < 0
        if nowhere.any():
            taken[nowhere] = self.absent
        return Column(
            self.kind, taken, self.domain, None if self.spread is None else self.spread[rows]
        )

    def without_values(self, rows: int) -> "Column":
        """Return a column of the same coding in which every value is missing."""
        return Column(self.kind, np.full(rows, self.absent, dtype=self.data.dtype), self.domain)

    def append(self, other: "Column") -> "Column":
        """Return the rows of both; the other has the same coding."""
        assert (self.kind, self.domain) == (other.kind, other.domain), "one coding"
        spread = None
        if self.spread is not None or other.spread is not None:
            parts = (np.zeros(len(c)) if c.spread is None else c.spread for c in (self, other))
            spread = np.concatenate(list(parts))
        return Column(self.kind, np.append(self.data, other.data), self.domain, spread)

    def numbers(self) -> Array:  # [n]
        """Return the values of numbers or booleans, NaN where they are missing."""
        if self.kind is Kind.CONTINUOUS:
            return np.asarray(self.data, dtype=np.float64)
        values = np.array([*self.domain, np.nan], dtype=np.float64)  # code -1 finds the last
        return np.asarray(values[self.data])

    def as_continuous(self) -> "Column":
        """Return numbers as a continuous column."""
        if self.kind is Kind.CONTINUOUS:
            return self
        return Column(Kind.CONTINUOUS, self.numbers())

    def for_expressions(self) -> NDArray[Any]:  # [n]
        """Return the values as `rspmn.expressions` takes them: numbers, or text."""
        if self.kind is Kind.CONTINUOUS or not any(isinstance(v, str) for v in self.domain):
            return self.numbers()
        text = [None if value is None else str(value) for value in self.decode()]
        return np.array(text, dtype=object)

    def decode(self) -> list[Value | None]:
        """Return the values, None where they are missing."""
        values: Sequence[Value | None]
        if self.kind is Kind.CONTINUOUS:
            return [None if np.isnan(x) else x for x in self.data.tolist()]
        values = (*self.domain, None)  # code -1 finds the last
        return [values[code] for code in self.data.tolist()]

    def recode(self, domain: tuple[Value, ...]) -> "Column":
        """Return the same values coded in a wider domain."""
        if domain == self.domain:
            return self
        place = {value: code for code, value in enumerate(domain)}
        codes = [*(place[value] for value in self.domain), MISSING]
        table = np.array(codes, dtype=narrowest(len(domain)))
        return Column(self.kind, table[self.data], domain)


def narrowest(size: int) -> Any:
    """Return the smallest integers that hold all numbers below `size`, and `size` itself."""
    if size < 2**15:
        return np.int8 if size < 2**7 else np.int16
    return np.int32 if size < 2**31 else np.int64


def same_domain(one: Column, other: Column, name: str) -> tuple[Column, Column]:
    """Return two columns of one variable in the same coding.

    Whole numbers in one part are continuous if numbers in the other are.
    """
    if {one.kind, other.kind} == {Kind.CONTINUOUS, Kind.INTEGER}:
        return one.as_continuous(), other.as_continuous()
    if not one.is_coded:
        one = other.without_values(len(one))
    if not other.is_coded:
        other = one.without_values(len(other))
    if one.kind is not other.kind:
        raise DataError(
            f"column {name!r} is {one.kind} in one part and {other.kind} in the other: give its "
            "kind in the schema"
        )
    domain = _sorted(set(one.domain) | set(other.domain), name)
    return one.recode(domain), other.recode(domain)


def encode(cells: Cells, kind: Kind | None, name: str) -> Column:
    """Return cells as a column; the kind is inferred from the values if it is not given.

    Dates are categories, named as ISO 8601 writes them.
    """
    present, missing = cells.present, cells.missing
    if not len(present):  # then their type says nothing either
        present = np.empty(0)
    elif present.dtype.kind == "M":
        present = _names_of_dates(present)
    kind = kind or infer_kind(present, name)
    if kind is Kind.CONTINUOUS:
        full = np.full(len(missing), np.nan)
        full[~missing] = _numbers(present, name, kind)
        return Column(kind, full)
    domain, codes = _distinct(present, kind, name)
    coded = np.full(len(missing), MISSING, dtype=narrowest(len(domain)))
    coded[~missing] = codes
    return Column(kind, coded, domain)


def infer_kind(present: NDArray[Any], name: str) -> Kind:
    """Return the kind of a column, inferred from its values.

    Numbers that are all whole are integers, also when they are stored as floats: that is how
    tables with gaps store integers.
    """
    match sort_of(present, name):
        case "bool":
            return Kind.BOOLEAN
        case "str":
            return Kind.CATEGORICAL
        case "int":
            return Kind.INTEGER
        case _:
            numbers = present.astype(np.float64)
            whole = bool(np.all(numbers == np.floor(numbers)))
            return Kind.INTEGER if whole else Kind.CONTINUOUS


def sort_of(present: NDArray[Any], name: str) -> str:
    """Return the type of all values: "bool", "int", "float" or "str"; refuse others."""
    if present.dtype.kind in "biufUT":
        return {"b": "bool", "i": "int", "u": "int", "f": "float"}.get(present.dtype.kind, "str")
    if present.dtype.kind != "O":
        raise DataError(
            f"column {name!r}: expected strings, numbers or booleans, found {present.dtype}"
        )
    values = present.tolist()
    sorts = {_sort_of_type(kind): kind for kind in set(map(type, values))}
    if "" in sorts:
        odd = next(value for value in values if type(value) is sorts[""])
        raise DataError(
            f"column {name!r}: expected strings, numbers or booleans, found {odd!r} "
            f"({type(odd).__name__})"
        )
    if set(sorts) == {"int", "float"}:
        return "float"
    if len(sorts) > 1:
        examples = {_sort_of_type(type(value)): value for value in reversed(values)}
        raise several_types(name, {sort: repr(value) for sort, value in examples.items()})
    return next(iter(sorts), "float")


def several_types(name: str, examples: Mapping[str, str]) -> DataError:
    """Return the error of a column with values of several types, given how one of each looks."""
    found = ", ".join(f"{examples[sort][:40]} ({sort})" for sort in sorted(examples))
    return DataError(
        f"column {name!r}: expected values of one type, found {found}: give all of them one type; "
        "where numbers are mixed with text, name the column in the option numbers"
    )


def _sort_of_type(kind: type) -> str:
    bases = ((bool, np.bool_), (int, np.integer), (float, np.floating), (str,))
    return next((group[0].__name__ for group in bases if issubclass(kind, group)), "")


def _distinct(
    present: NDArray[Any], kind: Kind, name: str
) -> tuple[tuple[Value, ...], NDArray[np.int32]]:
    """Return the sorted distinct values, as Python scalars of the right type, and codes."""
    sort = sort_of(present, name)
    if present.dtype.kind in "OUT" and sort in ("int", "str"):
        distinct, codes = _unique_by_hash(present)
    else:
        raw = (
            present
            if present.dtype.kind in "biuf"
            else present.astype(bool if sort == "bool" else float)
        )
        if sort == "float" and not np.all(np.isfinite(raw)):
            raise DataError(f"column {name!r}: expected finite numbers, found an infinite one")
        distinct, codes = distinct_integers(raw)
    values = distinct.tolist()
    if kind is Kind.BOOLEAN:
        if not set(values) <= {0, 1}:
            odd = next(value for value in values if value not in (0, 1))
            raise DataError(f"column {name!r} is boolean, but holds {odd!r}")
        # both values are in the domain, whichever were seen
        where = np.array([int(value) for value in values], dtype=np.int32)
        return (False, True), where[codes] if len(values) else codes.astype(np.int32)
    if kind is Kind.INTEGER:
        if sort == "str":
            raise DataError(f"column {name!r} is integer, but holds text, {_word(values)!r}")
        odd = next((value for value in values if value != int(value)), None)
        if odd is not None:
            raise DataError(f"column {name!r} is integer, but holds {odd:g}")
        values = [int(value) for value in values]
    return tuple(values), codes.astype(np.int32)


def _unique_by_hash(raw: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return what np.unique does, for objects: hashing is much faster than sorting them all."""
    values = raw.tolist()
    distinct = sorted(set(values))
    code = {value: place for place, value in enumerate(distinct)}
    codes = np.fromiter(map(code.__getitem__, values), np.int64, len(values))
    return np.array(distinct, dtype=object), codes


def _names_of_dates(dates: NDArray[Any]) -> NDArray[Any]:
    """Return dates as text, without the time of day if all are at midnight."""
    whole = bool((dates == dates.astype("M8[D]")).all())
    seconds = bool((dates == dates.astype("M8[s]")).all())
    unit = "D" if whole else "s" if seconds else "us"
    return np.datetime_as_string(dates.astype(f"M8[{unit}]")).astype(object)


def _numbers(present: NDArray[Any], name: str, kind: Kind) -> Array:
    if sort_of(present, name) == "str":
        raise DataError(f"column {name!r} is {kind}, but holds text, {_word(present)!r}")
    numbers: Array = present.astype(np.float64) + 0.0  # there is one zero
    if not np.all(np.isfinite(numbers)):
        raise DataError(f"column {name!r}: expected finite numbers, found an infinite one")
    return numbers


def _word(values: Iterable[Any]) -> str:
    """Return a value that is not a number, if there is one."""
    words = [str(value) for value in values]
    return next((w for w in words if not re.fullmatch(r"[-+.\deE]+", w)), words[0])


def _sorted(values: set[Value], name: str) -> tuple[Value, ...]:
    try:
        return tuple(sorted(values))  # type: ignore[type-var]
    except TypeError:
        kinds = sorted({type(value).__name__ for value in values})
        raise DataError(f"column {name!r}: expected values of one type, found {kinds}") from None
