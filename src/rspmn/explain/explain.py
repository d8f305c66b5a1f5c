"""Why a policy decides as it does in a state."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rspmn.errors import EvidenceError
from rspmn.explain.after_actions import OutcomeFinder
from rspmn.explain.changes import Changes, Values
from rspmn.explain.explanation import ActionReason, Decided, Explanation, NextState, Place
from rspmn.explain.information import InformationValue, value_of_information
from rspmn.explain.outcome_rows import OutcomeRows
from rspmn.explain.sensitivity import Event, Sensitivity, sensitivities
from rspmn.explain.similar import LoggedWindows
from rspmn.explain.text import NodeWords
from rspmn.infer.actions import best_among
from rspmn.infer.compiled.mixture import Situation
from rspmn.infer.policy import Policy
from rspmn.trust.how_sure import ActionInterval, HowSure
from rspmn.types import Array
from rspmn.values import Value

#: So many next states of an action are told, and those less probable than this are not.
NEXT, LEAST = 5, 0.005

#: What an action earns in a step, and where it leads.
Follows = tuple[float, tuple[NextState, ...]]


class Explainer:
    """Explains the decisions of a policy; what does not depend on the state is found once."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.words, self.values = policy, NodeWords(policy.model), Values(policy)
        serves = OutcomeRows.serves(policy.model.template)
        self._outcomes = OutcomeFinder(policy) if serves else None
        self._log: tuple[object, LoggedWindows] | None = None

    def explain(self, state: object, t: int, log: object = None, similar: int = 5) -> Explanation:
        """Return why the policy decides as it does; see `Policy.explain`."""
        policy, known = self.policy, self.policy.known(state)
        sure = policy.how_sure(state, t)
        decided = self._decided(sure, known, t)
        changes = Changes(policy, self.values, known, t, decided)
        places = self._places(state, known)
        actions = self._actions(sure, policy.situation(state), policy.planned.after(t))
        steps = () if log is None else self._steps(log, known, places, similar)
        left = None if policy.horizon is None else policy.horizon - t
        return Explanation(
            known, t, left, sure.actions[0].action.decision, decided, actions,
            _margin(actions, decided), _ties(sure), sure.too_close, places, changes.influences(),
            changes.smallest(), sure.actions[0].action.averaged_over, steps, sure.notes,
        )  # fmt: skip

    def value_of_information(self, state: object, variable: str, t: int) -> InformationValue:
        """Return what it is worth to observe a variable before the decision."""
        return value_of_information(self.policy, self.values, state, variable, t)

    def sensitivity(self, state: object, t: int, event: Event | None) -> tuple[Sensitivity, ...]:
        """Return at which probabilities of what follows the best action changes."""
        if self._outcomes is None:
            raise EvidenceError(
                "sensitivity: templates with utilities that are not beside an S_L are not supported"
            )
        return sensitivities(self.policy, self._outcomes, self.words, state, t, event)

    def _decided(self, sure: HowSure, known: Mapping[str, Value], t: int) -> Decided | None:
        taken = sure.recommended
        if taken is None:
            return None
        if len(self.policy.model.schema.decisions) == 1:
            return {taken.action.decision: taken.action.value}
        made: Decided = self.policy.act(known or None, t)
        return made

    def _places(self, state: object, known: Mapping[str, Value]) -> tuple[Place, ...]:
        before = self.policy.model.schema.information_sets[0]
        shares = self.policy.nodes(
            None if state is None else {n: v for n, v in known.items() if n in before}
        )
        visits = self.policy.model.visits or (0.0,) * len(shares)
        order = np.argsort(-shares, kind="stable")[: np.count_nonzero(shares)]
        return tuple(
            Place(float(shares[k]), k, self.words.values(k), visits[k], self.words.text(k))
            for k in order.tolist()
        )

    # ---- actions -------------------------------------------------------------------

    def _actions(
        self, sure: HowSure, situation: Situation | None, after: int
    ) -> tuple[ActionReason, ...]:
        best = best_among([each.action for each in sure.actions])
        first = best[0].value if best else None
        follows = self._follows(situation, after)
        found = [_reason(each, follows.get(each.action.value)) for each in sure.actions]
        found.sort(
            key=lambda a: (
                a.value != first,
                math.isnan(a.utility),
                0.0 if math.isnan(a.utility) else -a.utility,
            )
        )
        return tuple(found)

    def _follows(self, situation: Situation | None, after: int) -> dict[Value, Follows]:
        """Return what each action earns in this step, and where it leads, if that can be told."""
        if situation is None or self._outcomes is None:
            return {}
        found = self._outcomes.after_actions(situation, after)
        numbers = zip(found.values, found.known.tolist(), found.earned.tolist(), strict=True)
        return {
            value: (earned, self._next(found.leads[k]))
            for k, (value, known, earned) in enumerate(numbers)
            if known
        }

    def _next(self, shares: Array) -> tuple[NextState, ...]:
        likely = np.flatnonzero(shares >= LEAST)
        order = likely[np.argsort(-shares[likely], kind="stable")][:NEXT]
        return tuple(
            NextState(float(shares[k]), k, self.words.values(k), self.words.text(k))
            for k in order.tolist()
        )

    # ---- the log -------------------------------------------------------------------

    def _steps(
        self, log: object, known: Mapping[str, Value], places: tuple[Place, ...], most: int
    ) -> Any:
        if self._log is None or self._log[0] is not log:
            self._log = log, LoggedWindows(self.policy.model, log)
        near = [place.node for place in places if place.probability >= 0.1]
        return self._log[1].nearest(known, near, most)


def _reason(sure: ActionInterval, follows: Follows | None) -> ActionReason:
    action = sure.action
    now, following = follows or (math.nan, ())
    return ActionReason(
        action.value, action.utility, now, action.utility - now, sure.low, sure.high, sure.best,
        action.steps, action.supported, action.available, following, sure.notes,
    )  # fmt: skip


def _ties(sure: HowSure) -> tuple[Value, ...]:
    return tuple(action.value for action in best_among([a.action for a in sure.actions])[1:])


def _margin(actions: tuple[ActionReason, ...], decided: Decided | None) -> float:
    """Return how much more the chosen action is worth than the next best."""
    others = [a.utility for a in actions[1:] if not math.isnan(a.utility)]
    return actions[0].utility - max(others) if decided and others else math.nan
