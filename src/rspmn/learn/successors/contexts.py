"""Contexts: the joint values of all that a next step may depend on, as codes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rspmn.data.keys import joint_key
from rspmn.learn.successors.transitions import Transitions
from rspmn.types import Ints


@dataclass(frozen=True, eq=False)
class Contexts:
    """Distinct joint values of some variables; 0 is the code of a missing value."""

    names: tuple[str, ...]
    sizes: Ints  # [variables], the number of codes of each
    codes: Ints  # [contexts, variables]

    def __len__(self) -> int:
        return len(self.codes)

    def only(self, names: Sequence[str]) -> "Contexts":
        """Return the contexts with some of the variables only; they need not be distinct."""
        at = [self.names.index(name) for name in names]
        return Contexts(tuple(names), self.sizes[at], self.codes[:, at])

    def with_variable(self, name: str, size: int, rows: Ints, codes: Ints) -> "Contexts":
        """Return some of the contexts with one more variable."""
        wider = np.hstack([self.codes[rows], np.asarray(codes)[:, None]])
        return Contexts((*self.names, name), np.append(self.sizes, size), wider)

    def key(self, names: Sequence[str]) -> Ints:  # [contexts]
        """Return one number for the joint value of some variables."""
        at = [self.names.index(name) for name in names]
        columns = [(self.codes[:, k], int(self.sizes[k])) for k in at]
        if not columns:
            return np.zeros(len(self), dtype=np.int64)
        return np.unique(joint_key(columns), return_inverse=True)[1]


def contexts_of(
    transitions: Transitions, names: Sequence[str], windows: Ints
) -> tuple[Contexts, Ints]:
    """Return the distinct contexts of some windows, and the number of each window's context."""
    columns = [transitions.codes_of(name, windows) for name in names]
    _, first, which = np.unique(joint_key(columns), return_index=True, return_inverse=True)
    sizes = np.array([size for _, size in columns], dtype=np.int64)
    codes = np.stack([codes[first] for codes, _ in columns], axis=1)
    return Contexts(tuple(names), sizes, codes), which.astype(np.int64)
