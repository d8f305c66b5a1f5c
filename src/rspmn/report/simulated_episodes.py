"""Episodes drawn from a model, under the policy or under current practice, the commonest first."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from rspmn.infer.policy import Policy
from rspmn.values import Value, plain, rounded

#: So many episodes are drawn of a policy, and of practice, and so many of each are shown.
DRAWN, SHOWN = 400, 8
#: Steps of an episode that are shown at most.
STEPS = 100


def played_episodes(policy: Policy, steps: int) -> dict[str, Any]:
    """Return episodes under the policy and under current practice.

    Of episodes that are alike one is shown, with their share of all that were drawn.
    """
    steps = min(steps, STEPS)
    best = policy.model.policy(steps, policy.discount) if policy.horizon else policy
    rng = np.random.default_rng(0)
    recommended = policy.model.sample(DRAWN, steps, rng, best)
    practised = policy.model.sample(DRAWN, steps, rng, "practice")
    return {
        "steps": steps,
        "policy": _commonest(policy, [recommended[k] for k in range(len(recommended))],
                             recommended.endings.tolist()),
        "practice": _commonest(policy, [practised[k] for k in range(len(practised))],
                               practised.endings.tolist()),
    }  # fmt: skip


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
