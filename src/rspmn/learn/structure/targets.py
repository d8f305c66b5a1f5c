"""Outlook: what follows an information set, as tests have to look at it.

Variables after the next decisions are looked at given those decisions. The decisions themselves
are not outcomes, with one exception: a value of a decision that is never seen where, by its share
elsewhere, it should have been seen often is taken as unavailable there.
"""

from dataclasses import dataclass

import numpy as np

from rspmn.learn.structure.contingency import contingency, rare_together
from rspmn.learn.structure.rows import Rows, weigh
from rspmn.schema import Schema
from rspmn.types import Array, Bools, Ints


@dataclass(frozen=True, eq=False)
class Seen:
    """Some variables that are seen later, and the decisions in between."""

    names: tuple[str, ...]
    strata: Ints  # [n], the joint value of the decisions in between


@dataclass(frozen=True, eq=False)
class Outlook:
    """All that follows."""

    seen: tuple[Seen, ...]
    choices: tuple[Seen, ...]  # one decision each, given those before it
    #: A choice never seen where at least so many were to be expected is unavailable there.
    unavailable_from: float = 10.0
    recurs: bool = False  # whether it is the state of a step that others follow

    def may_lack(self, rows: Rows, names: tuple[str, ...], choice: Seen) -> bool:
        """Say whether any part of the rows may lack a choice: how much weight never has it.

        What lacks a choice is made of joint values of all variables that lack it.
        """
        key = ("may lack", choice.names, id(choice))
        if key not in rows.memo:
            rows.memo[key] = _may_lack(rows, names, choice, self.unavailable_from), choice
        return bool(rows.memo[key][0])


def outlook(
    rows: Rows,
    schema: Schema,
    place: int,
    beyond: tuple[str, ...],
    given_decisions: bool = True,
    unavailable_from: float = 10.0,
    recurs: bool = False,
) -> Outlook:
    """Return what follows information set number `place`; `beyond` comes after the last set.

    Without `given_decisions`, as in the paper, decisions are variables like any other.
    """
    last = len(schema.decisions)
    if not given_decisions:
        later = [n for group in schema.information_sets[place + 1 :] for n in group]
        everything = (*later, *schema.decisions[place:], *beyond)
        return Outlook((Seen(everything, np.zeros(len(rows), np.int64)),), ())
    seen, choices = [], []
    for k in range(place + 1, last + 1):
        between = schema.decisions[place:k]
        names = schema.information_sets[k] + (beyond if k == last else ())
        if names:
            seen.append(Seen(names, rows.joint_codes(between)))
        choices.append(Seen((between[-1],), rows.joint_codes(between[:-1])))
    return Outlook(tuple(seen), tuple(choices), unavailable_from, recurs)


def within(rows: Rows, names: tuple[str, ...]) -> Outlook:
    """Return the outlook inside a set of variables: each looks at the others."""
    return Outlook((Seen(names, np.zeros(len(rows), np.int64)),), ())


def _may_lack(rows: Rows, names: tuple[str, ...], choice: Seen, least: float) -> bool:
    strata = int(choice.strata.max(initial=0)) + 1
    state = np.unique(rows.joint_codes(names) * strata + choice.strata, return_inverse=True)[1]
    decided = rows.codes(choice.names[0])
    size = int(decided.max()) + 1
    counts = weigh(state * size + decided, rows.weights, (int(state.max()) + 1) * size)
    table = counts.reshape(-1, size)  # [states, choices]
    of_state = np.zeros(len(table), dtype=np.int64)
    of_state[state] = choice.strata
    without, made = np.zeros((strata, size)), np.zeros((strata, size))
    np.add.at(without, of_state, (table == 0) * table.sum(axis=1, keepdims=True))
    np.add.at(made, of_state, table)
    expected = without * made / np.maximum(made.sum(axis=1, keepdims=True), 1e-300)
    return bool((expected >= least).any())


def lacks_choice(
    rows: Rows, names: tuple[str, ...], choice: Seen, least: float
) -> Bools:  # [names]
    """Say which variables have a value at which a choice is missing for no chance.

    It was never seen there although, by the shares of the value and of the choice, at least
    `least` were to be expected.
    """
    found = contingency(rows, names, choice.names, choice.strata)
    counts = found.counts  # [strata, cells, choices]
    own = counts.sum(axis=2, keepdims=True)
    choices = np.add.reduceat(counts, found.left.starts, axis=1)  # [strata, names, choices]
    total = np.maximum(choices.sum(axis=2, keepdims=True), 1e-300)
    expected = own * (choices / total)[:, found.left.owner]
    lacks = ((counts == 0) & (expected >= least)).any(axis=(0, 2))  # [cells]
    return np.logical_or.reduceat(lacks, found.left.starts)


def decision_counts(rows: Rows, name: str, choice: Seen) -> list[Array]:
    """Return a table [values, choices] for each stratum; the values are those that occur."""
    found = contingency(rows, (name,), choice.names, choice.strata)
    return list(found.counts[:, found.left_weights > 0])


def value_counts(rows: Rows, name: str, seen: Seen) -> tuple[Ints, Array, Ints]:
    """Return a variable's values, and the weight of each cell of what is seen after each value.

    Also to which stratum and variable each cell belongs, one number for both. Cells are left out
    in which nothing was seen.
    """
    found = contingency(rows, (name,), seen.names, seen.strata)
    values = np.flatnonzero(found.left_weights > 0)
    counts = rare_together(found.counts, found.right, found.right_weights, 2)[:, values]
    flat = np.moveaxis(counts, 0, 1).reshape(len(values), -1)
    strata = np.arange(len(found.counts))[:, None]
    block = (found.right.owner + strata * len(seen.names)).ravel()
    used = np.flatnonzero(flat.any(axis=0))
    return values, flat[:, used], block[used]
