"""How probable outcomes are after each action in a state."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rspmn.explain.outcome_rows import OutcomeRows
from rspmn.infer.compiled.bellman import Choices
from rspmn.infer.compiled.mixture import Situation
from rspmn.infer.policy import Policy
from rspmn.types import Array, Bools
from rspmn.values import Value

#: The outcomes of so many different numbers of steps to go are kept.
KEPT = 64


@dataclass(frozen=True, eq=False)
class AfterActions:
    """The outcomes of one step, given the first decision; later ones of the step are planned."""

    values: list[Value]  # of the decision
    known: Bools  # [values], whether the value is offered, and it is known what follows
    outcomes: Any  # sparse [values, outcomes], rows sum to 1 where it is known
    earned: Array  # [values], in this step
    leads: Array  # [values, interfaces]


class OutcomeFinder:
    """Finds the outcomes of actions; what does not depend on the state is found once."""

    def __init__(self, policy: Policy) -> None:
        self.planned = policy.planned
        self.rows = OutcomeRows(policy.model, policy.planned.offers)
        self._of_branches: dict[int, Any] = {}

    def after_actions(self, situation: Situation, after: int) -> AfterActions:
        """Return the outcomes of all actions in one state, so many steps following this one."""
        from scipy.sparse import csr_array, diags_array

        at, values = self.planned.at(after), situation.offers.values(situation.decision)
        pair, value = np.nonzero(situation.branches >= 0)
        branch = situation.branches[pair, value]
        weights = situation.beliefs.weights[pair] * at.known[branch]
        of_branches = self._outcomes(after, at.choices)
        shape = len(values), of_branches.shape[0]
        chosen = csr_array((weights, (value, branch)), shape=shape) @ of_branches
        total = np.asarray(chosen.sum(axis=1))
        known = total > 0
        scale = np.divide(1.0, total, out=np.zeros(len(total)), where=known)
        chosen = csr_array(diags_array(scale) @ chosen)
        leads = (chosen @ self.rows.leads).toarray()
        return AfterActions(values, known, chosen, chosen @ self.rows.earned, leads)

    def _outcomes(self, after: int, choices: Choices) -> Any:  # sparse [branches, outcomes]
        found = self._of_branches.get(after)  # other threads may empty the table at any time
        if found is None:
            if len(self._of_branches) >= KEPT:
                self._of_branches.clear()
            found = self._of_branches[after] = self.rows.after_choices(choices)
        return found
