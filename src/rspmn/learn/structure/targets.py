"""Targets: what an information set may matter for, as tests of relevance look at it.

Variables observed after later decisions are tested given those decisions. The decisions
themselves are targets in one way: where a value was never taken although, by its share elsewhere,
it was to be expected, the logger avoided it. What follows it there was not compared, so that states
with the variable and without it stay apart.

States in which different decisions are available are different. So a law of the schema is one more
column of the rows, a function of the state, and rows are divided until it is constant.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rspmn.availability import Law, label
from rspmn.data.columns import Column
from rspmn.errors import DataError
from rspmn.learn.structure.contingency import contingency, pool_rare
from rspmn.learn.structure.rows import Rows
from rspmn.schema import Kind, Schema
from rspmn.types import Array, Bools, Ints

#: The level of all tests together that a decision value was avoided at a value of a variable.
AVOIDED = 0.05


def law_columns(schema: Schema, columns: Mapping[str, Column], counts: Array) -> dict[str, Column]:
    """Return a column for each law of a schema; rows that break one are refused."""
    found = {}
    for law in schema.laws:
        holds = law.holds({name: columns[name].for_expressions() for name in law.variables})
        _refuse_broken(law, columns[law.decision], holds, counts)
        found[law.column] = Column(Kind.BOOLEAN, holds.astype(np.int32), (False, True))
    return found


def _refuse_broken(law: Law, made: Column, holds: Bools, counts: Array) -> None:
    taken = [code for code, value in enumerate(made.domain) if label(value) == law.value]
    broken = np.isin(made.data, taken) & ~holds
    if broken.any():
        raise DataError(
            f"{law}, but it occurs in {counts[broken].sum():g} other steps: correct the "
            "schema's condition, or the log"
        )


@dataclass(frozen=True, eq=False)
class Laws:
    """The laws about later decisions that do not say the same of all rows."""

    columns: tuple[str, ...] = ()
    variables: frozenset[str] = frozenset()  # that they depend on

    @classmethod
    def after(cls, rows: Rows, schema: Schema, place: int) -> "Laws":
        """Return the laws about decisions after information set number `place`."""
        later = schema.decisions[place:]
        laws = [law for law in schema.laws if law.decision in later and rows.varies(law.column)]
        return cls(
            tuple(law.column for law in laws), frozenset(n for law in laws for n in law.variables)
        )

    def tables(self, rows: Rows, name: str) -> list[Array]:  # [values, 2] each
        """Return the weight of the rows, for each value of a variable, in which a law holds."""
        strata = np.zeros(len(rows), dtype=np.int64)
        tables = (contingency(rows, (name,), (column,), strata) for column in self.columns)
        return [found.counts[0][found.left_weights > 0] for found in tables]


def law_differs(own: Array, others: Array) -> Bools:  # [groups]
    """Return which groups a law does not say the same of: it holds, or not, in only one of them.

    `own`, `others`: the weight of a value's rows in which it does not hold and in which it holds,
    and that of each group. [2], [groups, 2].
    """
    return np.asarray(((own > 0) != (others > 0)).any(axis=-1))


@dataclass(frozen=True, eq=False)
class Later:
    """Some variables observed later, and the decisions in between."""

    names: tuple[str, ...]
    strata: Ints  # [n], the joint value of the decisions in between


@dataclass(frozen=True, eq=False)
class Targets:
    """All that comes after an information set."""

    outcomes: tuple[Later, ...]
    choices: tuple[Later, ...]  # one decision each, given those before it
    #: A value observed less often than this with a decision is too rare to call it irrelevant.
    enough: float = 10.0
    recurs: bool = False  # whether the set is a state that other states follow
    laws: Laws = field(default_factory=Laws)  # about the availability of decisions

    @property
    def compared(self) -> tuple[Later, ...]:
        """What the values of a variable are compared by: outcomes, and laws that vary."""
        if not self.laws.columns:
            return self.outcomes
        return (
            Later(self.laws.columns, np.zeros_like(self.outcomes[-1].strata)),
            *self.outcomes,
        )


def targets_after(
    rows: Rows,
    schema: Schema,
    place: int,
    beyond: tuple[str, ...],
    given_decisions: bool = True,
    enough: float = 10.0,
    recurs: bool = False,
) -> Targets:
    """Return the targets of information set number `place`; `beyond` comes after the last set.

    Without `given_decisions`, as in the paper, decisions are variables like any other.
    """
    last = len(schema.decisions)
    if not given_decisions:
        later = [n for group in schema.information_sets[place + 1 :] for n in group]
        everything = (*later, *schema.decisions[place:], *beyond)
        whole = Later(everything, np.zeros(len(rows), np.int64))
        return Targets((whole,), (), enough)
    outcomes, choices = [], []
    for k in range(place + 1, last + 1):
        between = schema.decisions[place:k]
        names = schema.information_sets[k] + (beyond if k == last else ())
        if names:
            outcomes.append(Later(names, rows.joint_codes(between)))
        choices.append(Later((between[-1],), rows.joint_codes(between[:-1])))
    laws = Laws.after(rows, schema, place)
    return Targets(tuple(outcomes), tuple(choices), enough, recurs, laws)


def targets_within(rows: Rows, names: tuple[str, ...]) -> Targets:
    """Return the targets inside a set of variables: each of them is a target of the others."""
    return Targets((Later(names, rows.together),), ())


def avoided(rows: Rows, names: Sequence[str], choice: Later) -> Bools:  # [names]
    """Return which variables have a value at which a decision value was avoided.

    It was never taken there although, by its share at the other values, chance would leave it out
    with a probability of at most `AVOIDED`, for all tests of a variable.
    """
    found = contingency(rows, names, choice.names, choice.strata)
    counts, starts, owner = found.counts, found.left.starts, found.left.owner
    own = counts.sum(axis=2, keepdims=True)  # [strata, cells, 1]
    made = np.add.reduceat(counts, starts, axis=1)[:, owner]  # [strata, cells, choices]
    surprise = _surprise(own, made, made.sum(axis=2, keepdims=True))
    tests = np.add.reduceat((own > 0) * (made > 0).sum(axis=2, keepdims=True), starts, axis=1)
    surprise -= np.log(np.maximum(tests.sum(axis=0), 1) / AVOIDED)[owner]
    lacks = (counts == 0) & (surprise >= 0)
    return np.logical_or.reduceat(lacks.any(axis=(0, 2)), starts)


def _surprise(own: Array, made: Array, total: Array) -> Array:
    """Return -log of the probability that `own` of `total` steps all lack a value made elsewhere.

    By its share `made` of the steps elsewhere. It is about how often the value was expected.
    """
    share = made / np.maximum(total - own, 1e-300)
    with np.errstate(divide="ignore", invalid="ignore"):  # where own is 0 and the share is 1
        surprise = -own * np.log1p(-np.minimum(share, 1.0))
    return np.asarray(np.where((own > 0) & (made > 0), surprise, 0.0))


def outcome_counts(rows: Rows, name: str, target: Later) -> tuple[Ints, Array, Ints]:
    """Return a variable's values and the weight of each outcome that follows each value.

    The third array is the (stratum, variable) of each outcome as one number. Outcomes that never
    occur are left out.
    """
    found = contingency(rows, (name,), target.names, target.strata)
    values = np.flatnonzero(found.left_weights > 0)
    counts = pool_rare(found.counts, found.right, found.right_weights, 2)[:, values]
    flat = np.moveaxis(counts, 0, 1).reshape(len(values), -1)
    strata = np.arange(len(found.counts))[:, None]
    block = (found.right.owner + strata * len(target.names)).ravel()
    used = np.flatnonzero(flat.any(axis=0))
    return values, flat[:, used], block[used]
