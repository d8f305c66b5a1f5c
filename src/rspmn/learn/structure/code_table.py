"""Codes of all variables of a table of rows, by variable and as one matrix."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.data.columns import narrowest
from rspmn.types import Bools, Ints

#: Codes in the narrowest type of integers that holds them.
Matrix = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Codes:
    """The codes of several variables of some rows."""

    codes: Matrix  # [n, variables], below 0 where missing
    sizes: Ints  # [variables], how many codes there are

    def classes(self) -> list[tuple[Ints, Bools | None]]:
        """Return the variables that lack values in the same rows, and the rows that have them.

        None stands for all rows.
        """
        if self.codes.min(initial=0) >= 0:
            return [(np.arange(len(self.sizes)), None)]
        missing = self.codes < 0
        lacking = missing.any(axis=0)
        found: list[tuple[Ints, Bools | None]] = []
        if not lacking.all():
            found.append((np.flatnonzero(~lacking), None))
        patterns: dict[bytes, list[int]] = {}
        for variable in np.flatnonzero(lacking).tolist():
            patterns.setdefault(missing[:, variable].tobytes(), []).append(variable)
        found += [(np.array(same), ~missing[:, same[0]]) for same in patterns.values()]
        return found


class CodeTable(dict[str, NDArray[np.int32]]):
    """The codes of each variable, and those of all variables as a matrix.

    The matrix is made when it is first asked for. Tables with more variables share it.
    """

    def __init__(self, codes: Mapping[str, NDArray[np.int32]]) -> None:
        super().__init__(codes)
        self._first: CodeTable = self  # the table that has the matrix
        self._matrix: Matrix | None = None  # [n, variables of the first]
        self._places: dict[tuple[str, ...], NDArray[np.intp] | slice] = {}

    def with_more(self, more: Mapping[str, NDArray[np.int32]]) -> "CodeTable":
        """Return a table with more variables."""
        found = CodeTable({**self, **more})
        if not any(name in self._first for name in more):
            found._first = self._first
        return found

    def take(self, index: Ints, names: Sequence[str]) -> Matrix:  # [index, names]
        """Return the codes of some variables in some rows."""
        first = self._first
        if not names or not all(name in first for name in names):
            columns = [self[name][index] for name in names]
            return np.stack(columns, axis=1) if columns else np.zeros((len(index), 0), np.int32)
        if first._matrix is None:
            first._matrix = _matrix(first)
        places = first._places_of(tuple(names))
        if isinstance(places, slice):
            return first._matrix[:, places][index]
        return first._matrix[index][:, places]

    def _places_of(self, names: tuple[str, ...]) -> NDArray[np.intp] | slice:
        if names not in self._places:
            place = {name: k for k, name in enumerate(self)}
            found = np.array([place[name] for name in names], dtype=np.intp)
            follow = bool((np.diff(found) == 1).all())
            self._places[names] = slice(found[0], found[-1] + 1) if follow else found
        return self._places[names]


def _matrix(codes: CodeTable) -> Matrix:
    """Return all codes in the narrowest type that holds them."""
    largest = max(int(column.max(initial=0)) for column in codes.values())
    found = np.empty((len(next(iter(codes.values()))), len(codes)), narrowest(largest + 1))
    for place, column in enumerate(codes.values()):
        found[:, place] = column
    return found
