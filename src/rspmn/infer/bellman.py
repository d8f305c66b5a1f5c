"""One pass of the template is one Bellman update (Sec. 5).

An interface node in which no decision was tried that is followed by anything known, a frontier,
is worth as little as the worst of all others with the same steps to go: not knowing is no reason
to go there. That is a guess for planning: a step that leads there is not supported from there on.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rspmn.errors import EvidenceError
from rspmn.infer.criterion import MEU, Criterion
from rspmn.infer.evaluation import NOTHING_FOLLOWS, Evaluation, evaluate
from rspmn.infer.evidence import known_values
from rspmn.model import RSPMN, Evidence
from rspmn.types import Array
from rspmn.values import is_number


@dataclass(frozen=True)
class Future:
    """What the interface nodes are worth with some steps to go."""

    roots: list[Evaluation]  # [num_interfaces]
    bound: float = 0.0  # how far they may be off

    @classmethod
    def of_arrays(
        cls, values: Array, delays: Array, supports: Array, bound: float = 0.0
    ) -> "Future":
        """Return a future from values, delays and supported shares of the interface nodes."""
        numbers = zip(values.tolist(), delays.tolist(), supports.tolist(), strict=True)
        return cls([
            Evaluation(0.0, value, delay=delay, known=float(value > -math.inf), supported=support)
            for value, delay, support in numbers
        ], bound)  # fmt: skip

    @classmethod
    def nothing(cls, model: RSPMN) -> "Future":
        """Return the future of the last step."""
        return cls([NOTHING_FOLLOWS] * model.num_interfaces)

    def discounted(self, discount: float) -> list[Evaluation]:
        """Return the roots as the step before them sees them: a step later.

        With a discount, the episode goes on with that probability: what is not supported later
        counts less.
        """
        return [
            Evaluation(r.log_likelihood, discount * r.utility, math.inf,
                       discount * (r.delay + r.utility),
                       supported=1 - discount + discount * r.supported)
            if r.utility > -math.inf
            else Evaluation(r.log_likelihood, -math.inf, known=0.0, supported=0.0)
            for r in self.roots
        ]  # fmt: skip


def update(
    model: RSPMN,
    after: Future,
    discount: float = 1.0,
    evidence: Evidence | None = None,
    criterion: Criterion = MEU,
) -> Future:
    """Pass once through the template, from the next step's roots to this step's."""
    known = known_values(evidence, model.template) if evidence else {}
    evaluated = evaluate(model.template, known, after.discounted(discount), criterion)
    return Future(pessimistic([evaluated[root] for root in model.template.roots], model.unknown))


def pessimistic(roots: list[Evaluation], unknown: int | None) -> list[Evaluation]:
    """Give frontier nodes the lowest value of all others, but not the node of unknown successors.

    If all are frontier nodes there is nothing to compare them with, and they keep -∞.
    """
    known = [root for root in roots if root.utility > -math.inf]
    if not known:
        return roots
    worst = min(known, key=lambda root: root.utility)
    return [
        root._replace(utility=worst.utility, delay=worst.delay, known=1.0, supported=0.0)
        if root.utility == -math.inf and i != unknown
        else root
        for i, root in enumerate(roots)
    ]


def values(
    model: RSPMN,
    horizon: int | None = None,
    discount: float = 1.0,
    criterion: Criterion = MEU,
) -> list[float]:
    """Return the maximum expected utility of every interface node; NaN where nothing is known."""
    found = future_arrays(model, horizon, discount, criterion).values
    return [float(value) for value in np.where(np.isneginf(found), np.nan, found)]


class FutureArrays(NamedTuple):
    """What the interface nodes are worth with some steps to go, as arrays."""

    values: Array  # [interfaces]
    delays: Array  # [interfaces]
    supports: Array  # [interfaces]
    bound: float


def future_values(
    model: RSPMN, horizon: int | None, discount: float = 1.0, criterion: Criterion = MEU
) -> Future:
    """Return what each interface node is worth with `horizon` steps to go."""
    return Future.of_arrays(*future_arrays(model, horizon, discount, criterion))


def future_arrays(
    model: RSPMN, horizon: int | None, discount: float = 1.0, criterion: Criterion = MEU
) -> FutureArrays:
    """Return what each interface node is worth with `horizon` steps to go.

    Horizon 0 is the end: nothing follows. None means in the limit of many steps. Delays, which
    only matter to who has to choose between actions that tie, are left out where all is known.
    """
    from rspmn.infer.compiled.bellman import Choices
    from rspmn.infer.compiled.finite_horizon import settled_over, values_over
    from rspmn.infer.compiled.infinite_horizon import limit, supports_of_limit

    check_discount(discount)
    bellman, bound = model.bellman, 0.0
    if horizon is None:
        utilities, bound = limit(model, discount, criterion)
        delays = np.zeros(len(utilities))
        supports = supports_of_limit(model, utilities, None, discount, criterion)
    else:
        steps = check_steps(horizon, least=0)
        all_known = bellman.all_known(criterion)
        found = values_over(bellman, steps, discount, criterion, keep=not all_known)
        utilities, bound = found[steps], found.bound
        delays, supports = np.zeros(len(utilities)), np.ones(len(utilities))
        if not all_known:

            def choose(after: int, delays: Array) -> Choices:
                return bellman.choose(found[after], delays, discount, after == 0, criterion)

            settled = settled_over(bellman, found, steps, discount, choose, all_known)
            delays, supports = (part[steps] for part in settled)
    return FutureArrays(utilities, delays, supports, bound)


def check_discount(discount: float) -> None:
    """Refuse a discount that is not from 0 to 1."""
    if not is_number(discount) or not 0 <= discount <= 1:
        raise EvidenceError(f"discount: expected a number from 0 to 1, found {discount!r}")


def check_steps(horizon: int, least: int) -> int:
    """Refuse a horizon that is not a whole number of at least so many steps."""
    if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or horizon < least:
        raise EvidenceError(f"horizon: expected {least} or more steps, found {horizon!r}")
    return int(horizon)
