"""What actions are worth later in an episode: with fewer steps to go."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rspmn.infer.actions import shown_share
from rspmn.infer.policy import Policy
from rspmn.types import Ints
from rspmn.values import rounded

#: So many actions are kept at most, those of all numbers of steps together.
MOST = 60_000


def later_steps(policy: Policy, points: Mapping[int, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what the actions in a page are worth with fewer steps to go, the most steps first.

    Numbers are those of all actions, in the order of `points`. Where all are alike there is one.
    With many actions, some numbers of steps are left out.

    >>> from rspmn.envs.paper_grid import paper_grid
    >>> from rspmn.report.decision_points import DecisionPoints
    >>> policy = paper_grid().policy(3)
    >>> at = DecisionPoints(policy)
    >>> found = later_steps(policy, {0: at.facts(0, at.how_sure(0, {}))})
    >>> [each["left"] for each in found], found[1]["worth"][0]
    ([2, 1], -1.0)
    """
    if policy.horizon is None or policy.horizon < 2:
        return []
    branches = _branches(policy, points)
    found = []
    for left in _numbers_of_steps(policy.horizon, len(branches)):
        at = policy.planned.at(left - 1, delays=True)
        known, worth = at.known[branches], at.worth[branches]
        exact = [w if k > 0 else None for w, k in zip(worth.tolist(), known.tolist(), strict=True)]
        found.append(
            {
                "left": left,
                "worth": exact,
                "known": _short([shown_share(k) for k in known.tolist()]),
                "delay": _short(np.nan_to_num(at.delay[branches]).tolist()),
                "supported": _short([rounded(shown_share(s)) for s in at.supported[branches]]),
            }
        )
    return found


def _branches(policy: Policy, points: Mapping[int, Mapping[str, Any]]) -> Ints:
    """Return the branch of each action in a page, as `Offers` numbers them."""
    offers, found = policy.planned.offers, []
    for point, facts in points.items():
        values, row = offers.values(facts["decision"]), offers.branches(facts["decision"])[point]
        found += [int(row[values.index(action["value"])]) for action in facts["actions"]]
    return np.array(found, dtype=np.int64)


def _numbers_of_steps(horizon: int, actions: int) -> list[int]:
    """Return the numbers of steps that there is room for, the most first.

    >>> _numbers_of_steps(5, 10), _numbers_of_steps(1000, 10_000)
    ([4, 3, 2, 1], [999, 251, 63, 16, 4, 1])
    """
    room = min(horizon - 1, max(1, MOST // max(1, actions)))
    if room == horizon - 1:
        return list(range(horizon - 1, 0, -1))
    return sorted({round(x) for x in np.geomspace(1, horizon - 1, room).tolist()}, reverse=True)


def _short(numbers: list[Any]) -> Any:
    return numbers[0] if numbers and all(each == numbers[0] for each in numbers) else numbers
