"""Spaces of Gymnasium as named columns: what a log has for each part of an observation.

A `Discrete` space is a category, as it has no order; a `MultiDiscrete` is one for each of its
parts; a `MultiBinary` is booleans; a `Box` is numbers; a `Tuple` or `Dict` is the columns of what
is in it. Values are those that the environment gives: a `Discrete(3, start=5)` gives 5, 6 and 7.
Spaces are told by what they have, so Gymnasium itself is not needed to read a log of one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.errors import DataError
from rspmn.schema import Kind
from rspmn.values import Value

#: More columns than this are a picture, not a state.
MOST_COLUMNS = 1000


@dataclass(frozen=True)
class _Cell:
    """One column: where it stands in an observation, and what it holds."""

    name: str
    kind: Kind
    path: tuple[Any, ...]  # keys of Dicts and places in Tuples, down to an array
    place: tuple[int, ...]  # in that array, after the axis of time


class FlatSpace:
    """The columns of a space.

    Parameters
    ----------
    space
        A space of Gymnasium, or what looks like one.
    name
        What the column is called, or what the names of several begin with.

    >>> from gymnasium.spaces import Dict, Discrete, MultiBinary
    >>> flat = FlatSpace(Dict(agent=Discrete(4, start=1), lights=MultiBinary(2)), "seen")
    >>> flat.names
    ('seen_agent', 'seen_lights_0', 'seen_lights_1')
    >>> flat.values({"agent": 2, "lights": np.array([0, 1])})
    {'seen_agent': 2, 'seen_lights_0': False, 'seen_lights_1': True}
    """

    def __init__(self, space: Any, name: str) -> None:
        self.space = space
        self._cells = _cells(space, name, ())
        if len(self._cells) > MOST_COLUMNS:
            raise DataError(
                f"{name}: {len(self._cells)} columns are too many to learn from: what a step shows "
                "must be told by fewer variables"
            )
        if not self._cells:
            raise DataError(f"{name}: the space {space} has nothing in it")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(cell.name for cell in self._cells)

    @property
    def kinds(self) -> dict[str, Kind]:
        """What the columns hold."""
        return {cell.name: cell.kind for cell in self._cells}

    def columns(self, series: Any) -> dict[str, NDArray[Any]]:
        """Return the columns of many observations: arrays, or Tuples and Dicts of them."""
        found = {}
        for cell in self._cells:
            part = series
            for key in cell.path:
                part = part[key]
            found[cell.name] = np.moveaxis(np.asarray(part), 0, -1)[cell.place]
        return found

    def values(self, one: Any) -> dict[str, Value]:
        """Return what one observation says of each variable."""
        found = {name: column[0] for name, column in self.columns(self.stacked([one])).items()}
        return {name: _plain(value, self.kinds[name]) for name, value in found.items()}

    def stacked(self, many: Sequence[Any]) -> Any:
        """Return observations one after another as arrays, or Tuples and Dicts of them."""
        return _stacked(self.space, many)

    def compose(self, values: Mapping[str, Any]) -> Any:
        """Return the element of the space that has these values."""
        return _composed(self.space, {c.path + c.place: values[c.name] for c in self._cells}, ())


def _cells(space: Any, name: str, path: tuple[Any, ...]) -> tuple[_Cell, ...]:
    inner = getattr(space, "spaces", None)
    if isinstance(inner, Mapping):
        parts = [_cells(part, f"{name}_{key}", (*path, key)) for key, part in inner.items()]
        return tuple(cell for part in parts for cell in part)
    if isinstance(inner, tuple) and type(space).__name__ != "OneOf":  # which is one of them
        parts = [_cells(part, f"{name}_{k}", (*path, k)) for k, part in enumerate(inner)]
        return tuple(cell for part in parts for cell in part)
    kind = _kind(space)
    if kind is None:
        raise DataError(
            f"{name}: cannot make columns of {type(space).__name__}: expected Discrete, "
            "MultiDiscrete, MultiBinary, Box, Text, Tuple or Dict"
        )
    shape = getattr(space, "shape", None) or ()
    places = list(np.ndindex(*shape))
    return tuple(_Cell("_".join([name, *map(str, k)]), kind, path, k) for k in places)


def _kind(space: Any) -> Kind | None:
    """Return what each number of a space is."""
    if hasattr(space, "low") and hasattr(space, "high"):
        return Kind.CONTINUOUS
    if hasattr(space, "nvec") or (hasattr(space, "n") and hasattr(space, "start")):
        return Kind.CATEGORICAL
    if hasattr(space, "n"):
        return Kind.BOOLEAN
    return Kind.CATEGORICAL if hasattr(space, "character_set") else None


def _stacked(space: Any, many: Sequence[Any]) -> Any:
    inner = getattr(space, "spaces", None)
    if isinstance(inner, Mapping):
        return {key: _stacked(part, [one[key] for one in many]) for key, part in inner.items()}
    if isinstance(inner, tuple):
        return tuple(_stacked(part, [one[k] for one in many]) for k, part in enumerate(inner))
    return np.array(many)


def _composed(space: Any, values: Mapping[tuple[Any, ...], Any], path: tuple[Any, ...]) -> Any:
    inner = getattr(space, "spaces", None)
    if isinstance(inner, Mapping):
        return {key: _composed(part, values, (*path, key)) for key, part in inner.items()}
    if isinstance(inner, tuple):
        return tuple(_composed(part, values, (*path, k)) for k, part in enumerate(inner))
    shape = getattr(space, "shape", None) or ()
    if shape == ():
        return values[path]
    made = np.empty(shape, dtype=space.dtype)
    for place in np.ndindex(*shape):
        made[place] = values[path + place]
    return made


def _plain(value: Any, kind: Kind) -> Value:
    plain: Value = value.item() if isinstance(value, np.generic) else value
    return bool(plain) if kind is Kind.BOOLEAN else plain
