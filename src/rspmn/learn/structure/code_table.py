"""Codes of all variables of a table of rows, by variable and as one matrix."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import chain
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


class CodeTable(Mapping[str, NDArray[np.int32]]):
    """The codes of each variable, kept as one matrix.

    Tables with more variables, and those of fewer rows, share what they can: growing a network
    holds thousands of small ones.
    """

    def __init__(self, codes: Mapping[str, NDArray[np.int32]]) -> None:
        largest = max(int(column.max(initial=0)) for column in codes.values())
        #: [n, variables], in the narrowest type that holds them
        self._matrix = _matrix([*codes.values()], narrowest(largest + 1))
        self._place = {name: k for k, name in enumerate(codes)}
        self._places: dict[tuple[str, ...], NDArray[np.intp] | slice] = {}
        self._more: dict[str, NDArray[np.int32]] = {}  # variables that are not in the matrix

    def __getitem__(self, name: str) -> NDArray[np.int32]:  # [n]
        return self.of(name, slice(None))

    def __contains__(self, name: object) -> bool:
        return name in self._place or name in self._more

    def __iter__(self) -> Iterator[str]:
        return chain(self._place, self._more)

    def __len__(self) -> int:
        return len(self._place) + len(self._more)

    def with_more(self, more: Mapping[str, NDArray[np.int32]]) -> "CodeTable":
        """Return a table with more variables."""
        if any(name in self._place for name in more):
            return CodeTable({**self, **more})
        found = copy(self)
        found._more = {**self._more, **more}
        return found

    def recoded(self, index: Ints, codes: Mapping[str, NDArray[np.int32]]) -> "CodeTable":
        """Return a table of some rows, with other codes of some variables."""
        found = copy(self) if not self._more else CodeTable(self)
        wide = [narrowest(int(column.max(initial=0)) + 1) for column in codes.values()]
        kind = np.result_type(found._matrix, *wide)
        found._matrix = found._matrix[index].astype(kind, copy=False)
        for name, column in codes.items():
            found._matrix[:, found._place[name]] = column
        return found

    def of(self, name: str, index: Ints | slice) -> NDArray[np.int32]:  # [index]
        """Return the codes of a variable in some rows."""
        if name in self._more:
            return self._more[name][index]
        return self._matrix[index, self._place[name]].astype(np.int32)

    def take(self, index: Ints, names: Sequence[str]) -> Matrix:  # [index, names]
        """Return the codes of some variables in some rows."""
        if not names or not all(name in self._place for name in names):
            columns = [self.of(name, index) for name in names]
            return np.stack(columns, axis=1) if columns else np.zeros((len(index), 0), np.int32)
        places = self._places_of(tuple(names))
        if isinstance(places, slice):
            return self._matrix[:, places][index]
        return self._matrix[index][:, places]

    def _places_of(self, names: tuple[str, ...]) -> NDArray[np.intp] | slice:
        if names not in self._places:
            found = np.array([self._place[name] for name in names], dtype=np.intp)
            follow = bool((np.diff(found) == 1).all())
            self._places[names] = slice(found[0], found[-1] + 1) if follow else found
        return self._places[names]


def _matrix(columns: Sequence[NDArray[np.int32]], kind: Any) -> Matrix:
    """Return columns as a matrix; `np.stack` would make a copy of the wider type first."""
    found = np.empty((len(columns[0]), len(columns)), kind)
    for place, column in enumerate(columns):
        found[:, place] = column
    return found
