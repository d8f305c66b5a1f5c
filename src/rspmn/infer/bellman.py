"""One pass of the template is one Bellman update (Sec. 5).

An interface node in which no decision was tried that is followed by anything known, a frontier,
is worth as little as the worst of all others with the same steps to go: not knowing is no reason
to go there.
"""

import math
from dataclasses import dataclass

from rspmn.infer.evidence import known_values
from rspmn.infer.meu import Evaluation, evaluate
from rspmn.model import RSPMN, Evidence


@dataclass(frozen=True)
class Future:
    """What the interface nodes are worth with some steps to go."""

    roots: list[Evaluation]  # [num_interfaces]
    bound: float = 0.0  # how far from the limit; 0 with a horizon

    def discounted(self, discount: float) -> list[Evaluation]:
        """Return the roots as the step before them sees them."""
        return [
            Evaluation(
                r.log_likelihood, discount * r.utility if r.utility > -math.inf else r.utility
            )
            for r in self.roots
        ]


def update(
    model: RSPMN, after: Future, discount: float, evidence: Evidence | None = None
) -> Future:
    """Pass once through the template, from the next step's roots to this step's."""
    known = known_values(evidence, model.template) if evidence else {}
    evaluated = evaluate(model.template, known, after.discounted(discount))
    return Future(pessimistic([evaluated[root] for root in model.template.roots], model.unknown))


def pessimistic(roots: list[Evaluation], unknown: int | None) -> list[Evaluation]:
    """Give frontier nodes the lowest value of all others; of what is unknown itself nothing is.

    If all are frontier nodes there is nothing to compare them with, and they keep -∞.
    """
    floor = min((root.utility for root in roots if root.utility > -math.inf), default=-math.inf)
    return [
        root._replace(utility=floor) if root.utility == -math.inf and i != unknown else root
        for i, root in enumerate(roots)
    ]
