"""Contexts: all that a next step may depend on, in codes for each distinct one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rspmn.data.keys import joint_key
from rspmn.learn.successors.transitions import Transitions
from rspmn.types import Ints


@dataclass(frozen=True, eq=False)
class Contexts:
    """Distinct values of some variables together; 0 stands for a missing value."""

    names: tuple[str, ...]
    sizes: Ints  # [variables], how many codes each has
    codes: Ints  # [contexts, variables]

    def __len__(self) -> int:
        return len(self.codes)

    def only(self, names: Sequence[str]) -> "Contexts":
        """Return some of the variables of each."""
        at = [self.names.index(name) for name in names]
        return Contexts(tuple(names), self.sizes[at], self.codes[:, at])

    def with_variable(self, name: str, size: int, rows: Ints, codes: Ints) -> "Contexts":
        """Return some of the contexts with one more variable."""
        wider = np.hstack([self.codes[rows], np.asarray(codes)[:, None]])
        return Contexts((*self.names, name), np.append(self.sizes, size), wider)

    def key(self, names: Sequence[str]) -> Ints:  # [contexts]
        """Return one number for the values of some variables together."""
        at = [self.names.index(name) for name in names]
        columns = [(self.codes[:, k], int(self.sizes[k])) for k in at]
        if not columns:
            return np.zeros(len(self), dtype=np.int64)
        return np.unique(joint_key(columns), return_inverse=True)[1]


def contexts_of(
    transitions: Transitions, names: Sequence[str], windows: Ints
) -> tuple[Contexts, Ints]:
    """Return the distinct contexts of some windows, and which each has."""
    columns = [transitions.codes_of(name, windows) for name in names]
    _, first, which = np.unique(joint_key(columns), return_index=True, return_inverse=True)
    sizes = np.array([size for _, size in columns], dtype=np.int64)
    codes = np.stack([codes[first] for codes, _ in columns], axis=1)
    return Contexts(tuple(names), sizes, codes), which.astype(np.int64)
