"""Fields of a JSON object, checked as they are read: errors name the object and the field."""

from collections.abc import Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

import numpy as np

from rspmn.errors import ModelFileError, RspmnError, did_you_mean
from rspmn.types import Ints
from rspmn.values import END, UNKNOWN, Mark, Value, as_value

#: Longer lists of integers are written as differences where these are shorter, and networks of more
#: nodes as arrays: files of this size are for machines.
LONG = 10_000

#: How marks are written: JSON has no such values.
MARKS = {END: "end", UNKNOWN: "unknown"}


@contextmanager
def located(where: str) -> Iterator[None]:
    """Prefix errors with their place in the file."""
    try:
        yield
    except ModelFileError:
        raise
    except RspmnError as error:
        raise ModelFileError(f"{where}: {error}") from None


class Fields:
    """A JSON object whose fields are checked when they are read.

    >>> Fields({"mean": 2}, "model.json, node 3").number("mean")
    2.0
    >>> Fields({"mean": "high"}, "model.json, node 3").number("mean")
    Traceback (most recent call last):
    rspmn.errors.ModelFileError: model.json, node 3: 'mean' must be a number, found 'high'
    """

    def __init__(self, raw: object, where: str, valid: list[str] | None = None) -> None:
        if not isinstance(raw, dict):
            raise ModelFileError(f"{where}: expected an object, found {_brief(raw)}")
        self.raw: Mapping[str, object] = raw
        self._where = where
        if valid is not None:
            self.only(valid)

    @property
    def where(self) -> str:
        """The place of the object in its file, for errors."""
        return self._where

    def only(self, valid: list[str]) -> None:
        """Refuse every key but these."""
        for key in self.raw:
            if key not in valid:
                raise ModelFileError(
                    f"{self.where}: unknown key {key!r}: {did_you_mean(key, valid)}"
                )

    def get(self, key: str, kind: type, name: str) -> Any:
        """Return a field of one type."""
        if key not in self.raw:
            raise ModelFileError(f"{self.where}: no {key!r}")
        found = self.raw[key]
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
            raise ModelFileError(f"{self.where}: {key!r} must be {name}, found {_brief(found)}")
        return found

    def text(self, key: str) -> str:
        """Return a string."""
        found: str = self.get(key, str, "a string")
        return found if found.isascii() else str(self._value(found, key))

    def integer(self, key: str) -> int:
        """Return an integer of 64 bits."""
        found = int(self.get(key, int, "an integer"))
        self._refuse_large(key, found)
        return found

    def number(self, key: str, default: float | None = None) -> float:
        """Return a number; a field that has a default may be left out."""
        if default is not None and key not in self.raw:
            return default
        found = self.get(key, int | float, "a number")  # type: ignore[arg-type]
        return found if type(found) is float else _as_float(found, f"{self.where}: {key!r}")

    def array(self, key: str) -> list[object]:
        """Return a list."""
        return list(self.get(key, list, "a list"))

    def integers(self, key: str) -> tuple[int, ...]:
        """Return a list of integers of 64 bits."""
        found = self._each(key, (int,), "integers")
        if found:
            self._refuse_large(key, max(found, key=abs))
        return found

    def numbers(self, key: str) -> tuple[float, ...]:
        """Return a list of numbers."""
        found = self._each(key, (float, int), "numbers")
        if all(type(number) is float for number in found):
            return found
        return tuple(_as_float(number, f"{self.where}: {key!r}") for number in found)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings."""
        found = self._each(key, (str,), "strings")
        return tuple(str(self._value(text, key)) for text in found)

    def values(self, key: str) -> tuple[Value, ...]:
        """Return a list of values; `{"end": true}` is END, `{"unknown": true}` UNKNOWN."""
        items = self.array(key)
        if all(type(item) is int for item in items):
            return tuple(items)  # type: ignore[arg-type]
        return tuple(_mark(item) or self._value(item, key) for item in items)

    def _value(self, raw: object, key: str) -> Value:
        return as_value(raw, f"{self.where}: {key}", ModelFileError)

    def _refuse_large(self, key: str, number: int) -> None:
        if abs(number) >= 2**63:
            raise ModelFileError(f"{self.where}: {key!r} is too large a number")

    def _each(self, key: str, types: tuple[type, ...], name: str) -> tuple[Any, ...]:
        items = self._listed(key)
        if not set(map(type, items)) <= set(types):
            odd = next(item for item in items if type(item) not in types)
            raise ModelFileError(
                f"{self.where}: {key!r} must be a list of {name}, found {_brief(odd)} in it"
            )
        return tuple(items)

    def _listed(self, key: str) -> list[object]:
        """Return a list, or what a list of differences of integers adds up to."""
        if not isinstance(self.raw.get(key), dict):
            return self.array(key)
        part = Fields(self.raw[key], f"{self.where}, {key}", ["differences"])
        found = part.get("differences", list, "a list of integers")
        if not set(map(type, found)) <= {int}:
            raise ModelFileError(f"{part.where}: expected integers, found {_brief(found)}")
        return [*accumulate(found)]


def plain_values(values: tuple[Value, ...]) -> list[object]:
    """Return values as JSON has them, so that `Fields.values` reads them."""
    return [{MARKS[v]: True} if isinstance(v, Mark) else v for v in values]


def is_long(items: Sized) -> bool:
    """Say whether something is written for machines."""
    return len(items) > LONG


def compact(numbers: Ints | Sequence[int]) -> object:
    """Return integers as JSON has them, so that `Fields.integers` reads them.

    >>> compact([3, 5]), compact(range(70_000, 90_000)) == {"differences": [70_000, *[1] * 19_999]}
    ([3, 5], True)
    """
    plain = np.asarray(numbers, dtype=np.int64)
    differences = np.diff(plain, prepend=0)
    if not is_long(plain) or _characters(differences) >= _characters(plain):
        return plain.tolist()
    return {"differences": differences.tolist()}


def _characters(numbers: Ints) -> int:
    """Return how many signs and digits, beyond one for each, integers are written with."""
    digits = np.searchsorted(10 ** np.arange(1, 19), abs(numbers), side="right")
    return int(digits.sum() + (numbers < 0).sum())


def _mark(raw: object) -> Mark | None:
    if not isinstance(raw, dict) or [v is True for v in raw.values()] != [True]:
        return None
    return next((mark for mark, key in MARKS.items() if key in raw), None)


def _as_float(number: float, where: str) -> float:
    try:
        return float(number)
    except OverflowError:
        raise ModelFileError(f"{where} is too large a number") from None


def _brief(raw: object) -> str:
    text = repr(raw)
    return text if len(text) <= 40 else text[:37] + "..."
