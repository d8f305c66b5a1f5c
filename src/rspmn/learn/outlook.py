"""Outlook: what follows an information set, as tests have to look at it.

Variables after the next decisions are looked at given those decisions. The decisions themselves
are not outcomes, with one exception: a value of a decision that is never seen where, by its share
elsewhere, it should have been seen often is taken as unavailable there.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rspmn.learn.independence import Blocks, joint_counts
from rspmn.learn.rows import Rows, weigh
from rspmn.schema import Schema

__all__ = [
    "Outlook",
    "Seen",
    "decision_counts",
    "lacks_choice",
    "outlook",
    "value_counts",
    "within",
]


@dataclass(frozen=True, eq=False)
class Seen:
    """Some variables that are seen later, and the decisions in between."""

    names: tuple[str, ...]
    strata: NDArray[np.int64]  # [n], the joint value of the decisions in between


@dataclass(frozen=True, eq=False)
class Outlook:
    """All that follows."""

    seen: tuple[Seen, ...]
    choices: tuple[Seen, ...]  # one decision each, given those before it
    #: A choice never seen where at least so many were to be expected is unavailable there.
    unavailable_from: float = 10.0


def outlook(
    rows: Rows,
    schema: Schema,
    place: int,
    given_decisions: bool = True,
    unavailable_from: float = 10.0,
) -> Outlook:
    """Return what follows information set number `place`.

    Without `given_decisions`, as in the paper, decisions are variables like any other.
    """
    last = len(schema.decisions)
    if not given_decisions:
        later = [n for group in schema.information_sets[place + 1 :] for n in group]
        everything = (*later, *schema.decisions[place:], schema.utility)
        return Outlook((Seen(everything, np.zeros(len(rows), np.int64)),), ())
    seen, choices = [], []
    for k in range(place + 1, last + 1):
        between = schema.decisions[place:k]
        names = schema.information_sets[k] + ((schema.utility,) if k == last else ())
        if names:
            seen.append(Seen(names, rows.joint_codes(between)))
        choices.append(Seen((between[-1],), rows.joint_codes(between[:-1])))
    return Outlook(tuple(seen), tuple(choices), unavailable_from)


def within(rows: Rows, names: tuple[str, ...]) -> Outlook:
    """Return the outlook inside a set of variables: each looks at the others."""
    return Outlook((Seen(names, np.zeros(len(rows), np.int64)),), ())


def lacks_choice(counts: NDArray[np.float64], least: float) -> NDArray[np.bool_]:
    """Say for each row of a table [values, choices] whether it lacks a choice for no chance.

    A cell is empty although, by the shares of its row and column, at least `least` were to be
    expected in it.
    """
    total = counts.sum()
    if not total > 0:
        return np.zeros(len(counts), dtype=bool)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / total
    return np.asarray(((counts == 0) & (expected >= least)).any(axis=1))


def decision_counts(
    rows: Rows, name: str, choice: Seen
) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Return the table [values, choices] of each stratum, with the values' codes."""
    codes = rows.codes(name)
    present = codes >= 0
    values, number = np.unique(codes[present], return_inverse=True)
    decided = rows.codes(choice.names[0])[present].astype(np.int64)
    strata = choice.strata[present]
    size = int(decided.max(initial=0)) + 1
    tables = []
    for stratum in np.unique(strata):
        here = strata == stratum
        flat = weigh(
            number[here] * size + decided[here],
            rows.weights[present][here],
            len(values) * size,
        )
        tables.append((values.astype(np.int64), flat.reshape(len(values), size)))
    return tables


def value_counts(
    rows: Rows, name: str, seen: Seen
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Return a variable's values, and the weight of each cell of what is seen after each value.

    Also to which stratum and variable each cell belongs, one number for both.
    """
    codes = rows.codes(name)
    values = np.unique(codes[codes >= 0])
    number = np.full(rows.table.sizes[name] + 1, -1, dtype=np.int64)
    number[values] = np.arange(len(values))
    one = Blocks([rows.table.codes[name]], rows.index, [number], [len(values)])
    other = Blocks.of(rows, seen.names)
    block = np.repeat(np.arange(len(seen.names)), other.sizes)
    tables, blocks = [], []
    for place, stratum in enumerate(np.unique(seen.strata)):
        chosen = np.flatnonzero(seen.strata == stratum)
        tables.append(joint_counts(one, other, rows.weights, chosen))
        blocks.append(block + place * len(seen.names))
    return values.astype(np.int64), np.hstack(tables), np.concatenate(blocks)
