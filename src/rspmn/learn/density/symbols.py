"""Rows as symbols: the values, or bins of values, of all variables numbered in one row."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rspmn.learn.structure.rows import Rows
from rspmn.types import Array, Ints

#: Rows that are evaluated at a time. Products of small matrices are faster in one thread; OpenBLAS
#: starts others above 32 · 32 · 256 multiplications.
CHUNK = 256


@dataclass(frozen=True, eq=False)
class Symbols:
    """Weighted rows of some variables; `starts[i] + code` is the symbol of a value."""

    codes: Ints  # [variables, n], -1 where missing
    weights: Array  # [n]
    starts: Ints  # [variables + 1], the first symbol of each
    shares: Array  # [symbols], of each value in all rows of the table that have the variable

    @classmethod
    def of(cls, rows: Rows, names: Sequence[str]) -> "Symbols":
        """Return the symbols of some variables of rows."""
        sizes = [rows.table.sizes[name] for name in names]
        codes = np.stack([rows.codes(name) for name in names]).astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        shares = np.concatenate(
            [_shares(c, rows.weights, s) for c, s in zip(codes, sizes, strict=True)]
        )
        return cls(codes, rows.weights, starts, shares)

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def size(self) -> int:
        """The number of symbols."""
        return int(self.starts[-1])

    @cached_property
    def all(self) -> Ints:  # [variables, n]
        """The symbols, `size` where a value is missing."""
        return np.where(self.codes < 0, self.size, self.codes + self.starts[:-1, None])

    def take(self, chosen: Ints) -> "Symbols":
        """Return some rows."""
        return replace(self, codes=self.codes[:, chosen], weights=self.weights[chosen])

    def weighed(self, weights: Array) -> "Symbols":
        """Return the rows that have a weight, with these weights."""
        used = np.flatnonzero(weights > 0)
        return replace(self, codes=self.codes[:, used], weights=weights[used])

    def chunks(self) -> list["Symbols"]:
        """Return all rows, some at a time."""
        return [
            self.take(np.arange(start, min(len(self), start + CHUNK)))
            for start in range(0, len(self), CHUNK)
        ]

    def indicators(self, variable: int) -> Array:  # [n, codes]
        """Return 1 at the code of each row."""
        size = int(self.starts[variable + 1] - self.starts[variable])
        return np.asarray(self.codes[variable][:, None] == np.arange(size), dtype=np.float32)

    def independent_log_likelihood(self) -> float:
        """Return the mean log-likelihood of a row if all variables were independent."""
        with np.errstate(divide="ignore"):
            logs = np.append(np.log(self.shares), 0.0)
        return float(logs[self.all].sum(axis=0) @ self.weights / self.weights.sum())


def _shares(codes: Ints, weights: Array, size: int) -> Array:  # [codes]
    here = codes >= 0
    counts = np.bincount(codes[here], weights[here], size)
    return np.asarray(counts / max(counts.sum(), 1e-300))


def split(symbols: Symbols, held_out: float, rng: np.random.Generator) -> tuple[Symbols, Symbols]:
    """Divide rows at random into those to estimate from and those held out.

    Equal rows are divided too: a weight counts rows. If nothing would be held out, all rows are.
    """
    counts = np.maximum(np.rint(symbols.weights), 1).astype(np.int64)
    kept_out = np.minimum(rng.binomial(counts, held_out).astype(np.float64), symbols.weights)
    if kept_out.sum() in (0, symbols.weights.sum()):
        return symbols, symbols
    return symbols.weighed(symbols.weights - kept_out), symbols.weighed(kept_out)
