"""One pass of the template is one Bellman update (Sec. 5)."""

from dataclasses import dataclass

from rspmn.infer.bottom_up import Evaluation, evaluate
from rspmn.infer.evidence import Evidence, known_values
from rspmn.model import RSPMN

__all__ = ["Future", "update"]


@dataclass(frozen=True)
class Future:
    """What the interface nodes are worth with some steps to go."""

    roots: list[Evaluation]  # [num_interfaces]
    bound: float = 0.0  # how far from the limit; 0 with a horizon

    def discounted(self, discount: float) -> list[Evaluation]:
        """Return the roots as the step before them sees them."""
        return [Evaluation(r.log_likelihood, discount * r.utility) for r in self.roots]


def update(
    model: RSPMN, after: Future, discount: float, evidence: Evidence | None = None
) -> Future:
    """Pass once through the template, from the next step's roots to this step's."""
    known = known_values(evidence, model.template) if evidence else {}
    evaluated = evaluate(model.template, known, after.discounted(discount))
    return Future([evaluated[root] for root in model.template.roots])
