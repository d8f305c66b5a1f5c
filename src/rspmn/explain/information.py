"""What it is worth to observe a variable before a decision is made."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rspmn.errors import EvidenceError, did_you_mean
from rspmn.explain.changes import Values
from rspmn.infer.compiled.beliefs import Beliefs
from rspmn.infer.compiled.layers import compile_likelihood
from rspmn.infer.compiled.leaf_tables import Distinct
from rspmn.infer.compiled.mixture import Situation, decide
from rspmn.infer.policy import Policy
from rspmn.types import Array
from rspmn.values import Mark, Value

#: The interval between two knots of a number is divided into so many parts.
PARTS = 8


@dataclass(frozen=True)
class InformationValue:
    """What it is worth to observe a variable: `gain`. Made by `Policy.value_of_information`."""

    variable: str
    gain: float  # seen - unseen
    seen: float  # the expected utility if the decision is made after the variable is observed
    unseen: float  # that of the best decision now
    decided: Value  # the best decision now
    #: The share of states, by what is given, of which the model knows a decision.
    known: float
    #: Each value of the variable, its probability, and the best decision there.
    values: tuple[tuple[Value, float, Value], ...] = field(repr=False)

    @property
    def changes(self) -> float:
        """The probability that the observation changes the decision."""
        return sum(share for _, share, made in self.values if made != self.decided)

    def __str__(self) -> str:
        return (
            f"observing {self.variable} has value {self.gain:.4g}: it changes the decision with "
            f"probability {self.changes:.3g}"
        )

    def to_dict(self) -> dict[str, object]:
        """Return the facts as JSON has them."""
        return {
            "variable": self.variable,
            "gain": self.gain,
            "seen": self.seen,
            "unseen": self.unseen,
            "decided": self.decided,
            "known": self.known,
            "changes": self.changes,
            "values": [list(each) for each in self.values],
        }


def value_of_information(
    policy: Policy, values: Values, state: object, variable: str, t: int
) -> InformationValue:
    """Return what it is worth to observe a variable; see `Policy.value_of_information`."""
    known = policy.known(state)
    _check(policy, known, variable)
    if policy.planned.divides([policy.planned.after(t)]):
        raise EvidenceError(
            "value of information: rules tell states of one interface node apart: ask without them"
        )
    tried, widths = _values_and_widths(values, variable)
    prior = np.array(policy.model.starts) if state is None else np.exp(policy.index.prior)
    rows = {
        name: Distinct([value], np.zeros(len(tried), np.int64)) for name, value in known.items()
    }
    rows[variable] = Distinct(tried, np.arange(len(tried)))
    with np.errstate(divide="ignore"):
        logs = (
            compile_likelihood(policy.index.network)(rows, len(tried))
            + np.log(prior)[:, None]
            + np.log(widths)
        )
    if np.isneginf(logs).all():
        raise EvidenceError("value of information: this state was never observed")
    joint = np.exp(logs - logs.max())  # [interfaces, values]
    shares = joint.sum(axis=0)
    joint, tried = joint[:, shares > 0], [v for v, s in zip(tried, shares, strict=True) if s > 0]
    unseen, decided = _best(policy, joint.sum(axis=1, keepdims=True), t)
    seen, made = _best(policy, joint, t)
    shares = joint.sum(axis=0) / joint.sum()
    here = np.isfinite(seen)
    if decided[0] is None or not here.any():
        raise EvidenceError("value of information: no decision with a known outcome in this state")
    found = float(shares[here] @ seen[here] / shares[here].sum())
    numbers = zip(tried, shares.tolist(), made, strict=True)
    told = tuple((v, share, act) for v, share, act in numbers if act is not None)
    best = float(unseen[0])
    return InformationValue(
        variable, found - best, found, best, decided[0], float(shares[here].sum()), told
    )


def _best(policy: Policy, joint: Array, t: int) -> tuple[Array, list[Value | None]]:
    """Return what the best first decision is worth, and which it is, of several beliefs.

    `joint` has a belief in each column: [interfaces, states]. NaN and None where none is known.
    """
    planned, states = policy.planned, joint.shape[1]
    after = planned.after(t)
    with np.errstate(divide="ignore"):
        logs = np.log(joint.T.ravel())
    nodes = np.tile(np.arange(len(joint)), states)
    beliefs = Beliefs.of_logs(np.full(states, len(joint)), nodes, logs)
    codes, is_open = decide(planned, beliefs, after)
    if is_open.any():
        raise EvidenceError("value of information: rewards beside the decision are not supported")
    decision = planned.together[0]
    situation = Situation(planned.offers, beliefs, planned.offers.first[beliefs.nodes], decision)
    worth, offered = situation.averages(planned.at(after)).utility, planned.offers.values(decision)
    made = [None if code < 0 else offered[code] for code in codes[0].tolist()]
    return np.where(codes[0] < 0, np.nan, worth[np.arange(states), codes[0]]), made


def _values_and_widths(values: Values, variable: str) -> tuple[list[Any], Array]:
    """Return values of a variable; of a number, points in the middle of intervals, and widths."""
    tried = values.tried(variable)
    numbers = [value for value in tried if not isinstance(value, str | Mark)]
    if not values.is_number(variable) or all(isinstance(value, int) for value in numbers):
        return tried, np.ones(len(tried))
    knots = np.array(numbers, dtype=np.float64)
    edges = np.interp(np.arange(PARTS * (len(knots) - 1) + 1) / PARTS, np.arange(len(knots)), knots)
    return ((edges[1:] + edges[:-1]) / 2).tolist(), np.diff(edges)


def _check(policy: Policy, known: dict[str, Value], variable: str) -> None:
    """Refuse a variable that is known, or not observed before the first decision."""
    before = policy.model.schema.information_sets[0]
    first = policy.model.schema.decisions[0]
    if variable not in before:
        raise EvidenceError(
            f"value of information: {variable!r} is not observed before {first!r}: "
            f"{did_you_mean(variable, before)}"
        )
    if variable in known:
        raise EvidenceError(f"value of information: {variable!r} is already given in the state")
    if any(name not in before for name in known):
        raise EvidenceError(f"value of information: expected a state before {first!r}")
