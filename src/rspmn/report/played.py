"""Episodes drawn from a model, under the policy or under current practice, the commonest first."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from rspmn.infer.evidence import Known
from rspmn.infer.policy import Policy
from rspmn.infer.sample import Decide
from rspmn.report.plain import plain, rounded
from rspmn.values import UNKNOWN, Mark, Value

#: So many episodes are drawn of a policy, and of practice, and so many of each are shown.
DRAWN, DRAWN_OF_PRACTICE, SHOWN = 400, 60, 8
#: Steps of an episode that are shown at most.
STEPS = 100


def played_episodes(policy: Policy, steps: int, seed: int = 0) -> dict[str, Any]:
    """Return episodes under the policy and under current practice.

    Of episodes that are alike one is shown, with their share of all that were drawn.
    """
    steps = min(steps, STEPS)
    best = policy.model.policy(steps, policy.discount) if policy.horizon else policy
    rng = np.random.default_rng(seed)
    recommended = policy.model.sample(DRAWN, steps, rng, best)
    practised = policy.model.sample(DRAWN_OF_PRACTICE, steps, rng, as_practised(policy, rng))
    return {
        "steps": steps,
        "policy": _commonest(policy, [recommended[k] for k in range(len(recommended))],
                             recommended.endings.tolist()),
        "practice": _commonest(policy, [practised[k] for k in range(len(practised))],
                               practised.endings.tolist()),
    }  # fmt: skip


def as_practised(policy: Policy, rng: np.random.Generator) -> Decide:
    """Return a function that decides as the log did: by its shares where the state may be.

    >>> from rspmn.envs.paper_grid import paper_grid
    >>> decide = as_practised(paper_grid().policy(2), np.random.default_rng(0))
    >>> decide("action", ["down", "up"], {"x": 0, "y": 0}, 2) in ("down", "up")
    True
    """
    planned = policy.planned
    shares: dict[tuple[tuple[str, Value], ...], dict[Value, float]] = {}

    def counted(known: Known) -> dict[Value, float]:
        situation = policy.situation(dict(known))
        if situation is None:
            return {}
        branches, weights = situation.branches, situation.beliefs.weights
        steps = np.zeros(branches.shape)
        offered = branches >= 0
        steps[offered] = planned.steps_of_branches(branches[offered], 0)
        steps[~np.isfinite(steps)] = 0.0
        per_value = (weights / weights.sum()) @ steps if len(weights) else steps.sum(axis=0)
        return dict(zip(planned.offers.values(situation.decision), per_value.tolist(), strict=True))

    def decide(decision: str, offered: Sequence[Value], known: Known, _: int) -> Value:
        possible = [value for value in offered if not isinstance(value, Mark)]
        if not possible:
            return UNKNOWN
        key = (*known.items(), ("", decision))
        if key not in shares:
            shares[key] = counted(known)
        weights = np.array([shares[key].get(value, 0.0) for value in possible])
        if not weights.sum():
            weights = np.ones(len(possible))
        return possible[int(rng.choice(len(possible), p=weights / weights.sum()))]

    return decide


def _commonest(
    policy: Policy, episodes: Sequence[list[dict[str, Value | None]]], endings: Sequence[int]
) -> list[dict[str, Any]]:
    utility = policy.model.schema.utility
    keys = [
        tuple(tuple(v for n, v in step.items() if n != utility) for step in episode)
        for episode in episodes
    ]
    counts, first = Counter(keys), {key: k for k, key in reversed([*enumerate(keys)])}
    found = []
    for key, count in counts.most_common(SHOWN):
        episode, ending = episodes[first[key]], endings[first[key]]
        found.append(
            {
                "share": rounded(count / len(episodes)),
                "ending": ("", "state", "end", "cut")[ending],
                "steps": [_step(policy, step) for step in episode],
            }
        )
    return found


def _step(policy: Policy, step: dict[str, Value | None]) -> dict[str, Any]:
    schema = policy.model.schema
    names = schema.information_sets[0]
    nodes = policy.nodes({name: step[name] for name in names})
    values = {name: value for name, value in step.items() if name != schema.utility}
    earned = step[schema.utility]
    return {
        "node": int(nodes.argmax()) if nodes.any() else None,
        "values": plain(values),
        "earned": rounded(float(earned)) if isinstance(earned, int | float) else None,
    }
