"""At which probability of what follows the best action changes.

In one step, what an action is worth is linear in the probability of an event, all else keeping its
proportions: q · (worth with the event) + (1 - q) · (worth without it). So the probability at which
it is worth as much as another action is exact. Only this step's probability is changed: what is
earned after it is as planned.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rspmn.errors import EvidenceError
from rspmn.explain.after_actions import OutcomeFinder
from rspmn.explain.text import NodeWords, state_text
from rspmn.infer.actions import ActionValue, best_among
from rspmn.infer.compiled.layers import compile_likelihood
from rspmn.infer.compiled.leaf_tables import Distinct
from rspmn.infer.policy import Policy
from rspmn.types import Array
from rspmn.values import Mark, Value

#: Events that are less probable than this, or than this from certain, are left out.
LEAST = 1e-6

#: What may follow: values of variables, or END.
Event = Mapping[str, Value] | Mark


@dataclass(frozen=True)
class Sensitivity:
    """How the best action depends on the probability of an event after an action."""

    action: Value
    event: str
    probability: float  # of the event after the action, in the model
    threshold: float  # at which the best action changes
    becomes: Value  # the best action beyond it
    with_event: float  # what the action is worth if the event is certain
    without: float  # what it is worth if the event is excluded

    @property
    def distance(self) -> float:
        """How far the probability is from its threshold."""
        return abs(self.threshold - self.probability)

    def __str__(self) -> str:
        side = "above" if self.threshold > self.probability else "below"
        return (
            f"after {self.action}, {self.event}: probability {self.probability:.3g}; {side} "
            f"{self.threshold:.3g}, {self.becomes} is best"
        )


def sensitivities(
    policy: Policy,
    outcomes: OutcomeFinder,
    words: NodeWords,
    state: object,
    t: int,
    event: Event | None,
) -> tuple[Sensitivity, ...]:
    """Return where the best action changes, the nearest first; see `Policy.sensitivity`."""
    situation, after = policy.situation(state), policy.planned.after(t)
    if situation is None:
        raise EvidenceError("sensitivity: expected only variables observed before the decision")
    answers = policy.action_values(state, t)
    best = best_among(answers)
    if not best:
        raise EvidenceError("sensitivity: no decision with a known outcome in this state")
    follows, rows = outcomes.after_actions(situation, after), outcomes.rows
    following = np.array([root.utility for root in policy.planned.future(after).roots])
    events = _events(policy, words, event)
    found: list[Sensitivity] = []
    for answer in answers:
        rival = _rival(answer, answers, best[0])
        k = follows.values.index(answer.value)
        if rival is None or not follows.known[k]:
            continue
        joint = (rows.leads.multiply(follows.outcomes[[k]].toarray().T)).tocoo()  # outcome, node
        outcome, node = joint.coords
        seen = joint.data * (node != (-1 if rows.model.unknown is None else rows.model.unknown))
        worth = rows.earned[outcome] + policy.discount * np.where(seen > 0, following[node], 0.0)
        found += _of_action(answer, rival, events, seen / seen.sum(), worth, node)
    return tuple(sorted(found, key=lambda each: each.distance))


def _of_action(
    answer: ActionValue,
    rival: ActionValue,
    events: Sequence[tuple[str, Array]],
    share: Array,
    worth: Array,
    node: Array,
) -> Iterator[Sensitivity]:
    """Return the threshold of each event that has one.

    `share`, `worth` and `node` are of what may follow the action.
    """
    for text, inside in events:
        of_event = share * inside[node]
        probability = float(of_event.sum())
        if not LEAST < probability < 1 - LEAST:
            continue
        with_event = float(of_event @ worth) / probability
        without = float((share - of_event) @ worth) / (1 - probability)
        slope = with_event - without
        # What is not known is valued as the rest of the branch, so the two may differ by rounding.
        other = rival.utility - (answer.utility - (probability * slope + without))
        threshold = (other - without) / slope if slope else math.nan
        if 0 <= threshold <= 1:
            becomes = rival.value if answer.utility >= rival.utility else answer.value
            yield Sensitivity(
                answer.value, text, probability, threshold, becomes, with_event, without
            )


def _rival(
    answer: ActionValue, answers: Sequence[ActionValue], best: ActionValue
) -> ActionValue | None:
    """Return the action to compare with: the best or, for the best, the next."""
    if math.isnan(answer.utility):
        return None
    if answer is not best:
        return best
    others = [a for a in answers if a is not best and not math.isnan(a.utility)]
    return max(others, key=lambda a: a.utility, default=None)


def _events(
    policy: Policy, words: NodeWords, event: Event | None
) -> list[tuple[str, Array]]:  # each [interfaces]
    """Return events, with their probability in each interface node of the next step."""
    model = policy.model
    if event is None:
        return [(words.text(k), each) for k, each in enumerate(np.eye(model.num_interfaces))]
    if isinstance(event, Mark):
        ended = np.zeros(model.num_interfaces)
        if model.end is not None:
            ended[model.end] = 1.0
        return [("the episode ends", ended)]
    for name in event:
        if name not in policy.index.names:
            raise EvidenceError(f"sensitivity: {name!r} is not a variable of the next state")
    rows = {name: Distinct([value], np.zeros(1, np.int64)) for name, value in event.items()}
    found = np.exp(compile_likelihood(policy.index.network)(rows, 1)[:, 0])
    if (found > 1 + LEAST).any():
        raise EvidenceError(
            f"sensitivity: {state_text(event)} has a density, not a probability: give values of "
            "discrete variables"
        )
    return [(state_text(event), np.minimum(found, 1.0))]
