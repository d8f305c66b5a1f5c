"""What every action is worth at each max node, how sure that is, and where it leads."""

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from rspmn.circuit import Max
from rspmn.errors import ConvergenceError
from rspmn.explain.after_actions import OutcomeFinder
from rspmn.explain.outcome_rows import OutcomeRows
from rspmn.infer.actions import ActionValue, judged, shown_share
from rspmn.infer.available_actions import checked
from rspmn.infer.compiled.beliefs import Beliefs
from rspmn.infer.compiled.mixture import Situation
from rspmn.infer.policy import Policy
from rspmn.trust.how_sure import ActionInterval, DrawnPlan, HowSure, how_sure
from rspmn.values import Mark, Value, plain, rounded

#: So many next states of an action are kept, and those less probable than this are not.
NEXT, LEAST = 12, 0.001


class DecisionPoints:
    """The max nodes of a policy's template at the first step, as `Offers` numbers them."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.planned = policy, policy.planned
        self.offers, self.after = policy.planned.offers, policy.planned.after(0)
        self.at = self.planned.at(self.after, delays=True)
        self._drawn = DrawnPlan(self.planned)
        self.no_intervals = self._why_no_intervals()  # in words; nothing if there are intervals

    def _why_no_intervals(self) -> str:
        if not self.policy.model.is_counted:
            return "the model keeps no counts of logged steps"
        try:
            self._drawn.worth(self.after)
        except ConvergenceError as error:  # without a horizon, values of draws may not converge
            return str(error).removeprefix("how sure: ")
        return ""

    def decision(self, point: int) -> str:
        """Return the decision of a max node."""
        node = self.offers.template.nodes[self.offers.maxes[point]]
        assert isinstance(node, Max)
        return node.decision

    def is_state(self, point: int) -> bool:
        """Return whether something can be decided at a max node: END has marks for decisions."""
        node = self.offers.template.nodes[self.offers.maxes[point]]
        assert isinstance(node, Max)
        return not all(isinstance(value, Mark) for value in node.values)

    def how_sure(self, point: int, known: Mapping[str, Value]) -> HowSure:
        """Return all actions at a max node, as `Policy.how_sure` does in a state that is there."""
        situation = self._situation(point)
        answers = checked(self._answers(situation), known, self.policy.model, 2 * self.policy.bound)
        drawn = None if self.no_intervals else situation
        return how_sure(answers, self._drawn, drawn, self.after)

    def facts(self, point: int, sure: HowSure) -> dict[str, Any]:
        """Return the actions that are offered at a max node, the best first."""
        taken = sure.recommended
        offered = [each for each in sure.actions if each.action.available]
        offered.sort(key=lambda each: (each is not taken, *_worst_last(each.action.utility)))
        return {
            "decision": self.decision(point),
            "tooClose": sure.too_close,
            "rivals": [plain(each.action.value) for each in sure.rivals],
            "actions": [self._action(point, each, each is taken) for each in offered],
        }

    def _situation(self, point: int) -> Situation:
        belief = Beliefs.certain(np.zeros(1, dtype=np.int64))
        return Situation(self.offers, belief, np.array([point]), self.decision(point))

    def _answers(self, situation: Situation) -> list[ActionValue]:
        found = situation.averages(self.at)
        late = np.nan_to_num(found.delay[0]).tolist()
        answers = []
        for k, value in enumerate(self.offers.values(situation.decision)):
            branch = situation.branches[:, k]
            steps = float(self.planned.steps_of_branches(branch[branch >= 0], self.after).sum())
            answers.append(
                ActionValue(
                    situation.decision, value, float(found.utility[0, k]),
                    float(found.available[0, k]), 0.0 if math.isinf(steps) else steps,
                    delay=late[k], known=shown_share(found.known[0, k]),
                    supported=shown_share(found.supported[0, k]),
                )
            )  # fmt: skip
        return judged(answers, found.utility[0].tolist(), 2 * self.policy.bound)

    def _action(self, point: int, sure: ActionInterval, taken: bool) -> dict[str, Any]:
        action = sure.action
        place = self.offers.values(action.decision).index(action.value)
        branch = int(self.offers.branches(action.decision)[point, place])
        now, leads = self._follows.get(branch, (math.nan, []))
        # Numbers that decisions are made of are exact, so that the page finds the same ties.
        return {
            "value": plain(action.value),
            "utility": plain(action.utility),
            "known": action.known,
            "delay": action.delay,
            "supported": rounded(action.supported),
            "steps": rounded(action.steps),
            "taken": taken,
            "best": action.best,
            "now": plain(float(now)),
            "low": rounded(sure.low),
            "high": rounded(sure.high),
            "probability": rounded(sure.best),
            "leads": leads,
            "notes": list(sure.notes),
        }

    @cached_property
    def _follows(self) -> dict[int, tuple[float, list[list[float | None]]]]:
        """What each branch earns in this step, and the interface nodes that it leads to."""
        if not OutcomeRows.serves(self.policy.model.template):
            return {}
        from scipy.sparse import csr_array

        rows = OutcomeFinder(self.policy).rows
        outcomes = rows.after_choices(self.at.choices)
        total = np.asarray(outcomes.sum(axis=1)).ravel()
        earned = np.asarray(outcomes @ rows.earned).ravel()
        leads = csr_array(outcomes @ rows.leads)
        found = {}
        for branch in np.flatnonzero((total > 0) & (self.at.known[:-1] > 0)).tolist():
            here = slice(*leads.indptr[branch : branch + 2].tolist())
            shares = leads.data[here] / total[branch]
            found[branch] = earned[branch] / total[branch], _likeliest(leads.indices[here], shares)
        return found


def _likeliest(nodes: Any, shares: Any) -> list[list[float | None]]:
    order = np.argsort(-shares, kind="stable")[:NEXT]
    return [[int(nodes[k]), rounded(float(shares[k]))] for k in order if shares[k] >= LEAST]


def _worst_last(utility: float) -> tuple[bool, float]:
    return math.isnan(utility), 0.0 if math.isnan(utility) else -utility
