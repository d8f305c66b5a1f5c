"""A weighted sample of windows that is the same on every engine and in every order of rows.

Each step is in the sample with the same probability. A hash of the window's values decides, not a
generator, so that every engine draws the same sample.
"""

import zlib
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rspmn.data.columns import Column
from rspmn.data.windows import Windows
from rspmn.schema import Kind
from rspmn.types import Array, Ints

Words = NDArray[np.uint64]


def sampled(windows: Windows, share: float, seed: int, codes: Ints | None = None) -> Windows:
    """Return the windows of a share of the steps; `codes` distinguish equal windows, [n]."""
    drawn = _uniform(windows, seed, codes)
    counts = _binomial(windows.counts, share, drawn)
    starts = np.minimum(counts, np.round(windows.starts * (counts / windows.counts)))
    kept = np.flatnonzero(counts)
    return replace(windows, counts=counts, starts=starts.astype(np.int64)).take(kept)


def _binomial(counts: Ints, share: float, drawn: Array) -> Ints:
    """Return how many of each window's steps are sampled, given a number in [0, 1) for each."""
    from scipy.stats import binom

    found = (drawn < share).astype(np.int64)
    several = counts > 1
    found[several] = binom.ppf(1 - drawn[several], counts[several], share).astype(np.int64)
    return found


def _uniform(windows: Windows, seed: int, codes: Ints | None) -> Array:  # [n]
    """Return numbers in [0, 1) that depend on the windows' values alone."""
    mixed = np.full(len(windows), seed, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in (*windows.columns.values(), *windows.next_columns.values()):
            mixed = _mix(mixed ^ _words(column))
        mixed = _mix(mixed ^ windows.followed.astype(np.uint64))
        if codes is not None:
            mixed = _mix(mixed ^ codes.astype(np.uint64))
    return (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53


def _words(column: Column) -> Words:  # [n]
    """Return a word for each value: the bits of a number, the checksum of any other value."""
    if column.kind is Kind.CONTINUOUS:
        numbers = np.where(column.missing, np.inf, column.data)  # NaN has many bit patterns
        return np.asarray(numbers.view(np.uint64))
    sums = [zlib.crc32(repr(value).encode()) for value in column.domain]
    return np.asarray(np.array([*sums, 0], dtype=np.uint64)[column.data])


def _mix(words: Words) -> Words:
    """Scatter the bits (the finalizer of splitmix64)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
