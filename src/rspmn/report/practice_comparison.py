"""What the recommended policy is worth beside current practice, and over how many steps."""

from dataclasses import asdict
from typing import Any

import numpy as np

from rspmn.data.episodes import Episodes
from rspmn.evaluate.comparison import Comparison, compare
from rspmn.evaluate.practice import practice, practice_value
from rspmn.infer.bellman import check_steps
from rspmn.infer.policy import Policy
from rspmn.model import RSPMN
from rspmn.values import plain

#: Without a horizon or a log, practice is followed until twice the steps change its value by less
#: than this share; over so many steps at most.
SETTLED, MOST_STEPS = 1e-3, 256
#: So many horizons are drawn.
HORIZONS = 40


def compared_steps(policy: Policy, log: Episodes | None) -> int:
    """Return the number of steps over which a policy is compared with practice.

    That is its horizon; without one, the longest episode of the log; without that, the number
    after which the value of practice has settled.
    """
    if policy.horizon is not None:
        return policy.horizon
    if log is not None:
        return check_steps(int(log.lengths.max()), least=1)
    steps, before = 8, practice_value(policy.model, 4, policy.discount).value
    while steps < MOST_STEPS:
        value = practice_value(policy.model, steps, policy.discount).value
        if before and abs(value - before) <= SETTLED * abs(value):
            return steps
        before, steps = value, 2 * steps
    return steps


def comparison_of(policy: Policy, log: Episodes, steps: int) -> Comparison | None:
    """Return the policy beside the practice of a log; None for models that keep no counts."""
    if not policy.model.is_counted:
        return None
    return compare(policy.model, log, steps, policy.discount)


def worth_facts(policy: Policy, found: Comparison | None, steps: int) -> dict[str, Any]:
    """Return the honest value, that of practice, and the maximum expected utility by horizon."""
    model, discount = policy.model, policy.discount
    facts: dict[str, Any] = {"steps": steps, "practice": None, "policy": None, "difference": None}
    if found is not None:
        facts["practice"] = _interval(found.practice.value, found.practice.low, found.practice.high)
        gap = found.difference
        facts["difference"] = _interval(gap.value, gap.low, gap.high)
        facts |= {"better": found.better, "agreement": found.agreement, "episodes": found.episodes}
        honest = found.policy
    else:
        honest = None
        value = practice_value(model, steps, discount).value
        facts["practice"] = _interval(value, np.nan, np.nan)
        if model.is_counted:
            estimate = practice(model, steps, discount)
            facts["practice"] = _interval(estimate.value, estimate.low, estimate.high)
            honest = model.honest_value(steps, discount)
    if honest is not None:
        facts["policy"] = {**asdict(honest), "kept": honest.kept}
    facts["promise"] = float(model.policy(steps, discount).value())
    facts["byHorizon"] = by_horizon(model, steps, discount)
    return dict(plain(facts))


def by_horizon(model: RSPMN, steps: int, discount: float) -> list[dict[str, float]]:
    """Return the maximum expected utility, and the value of practice, over numbers of steps.

    >>> from rspmn.envs.paper_grid import paper_grid
    >>> by_horizon(paper_grid(), 2, 1.0)[1]["meu"]
    -2.0
    """
    policy, starts = model.policy(steps, discount), np.array(model.starts)
    practised = practice_value(model, steps, discount).worths.nodes @ starts  # [steps + 1]
    horizons = np.unique(np.linspace(1, steps, min(steps, HORIZONS)).round().astype(int)).tolist()
    return list(plain([
        {
            "steps": h,
            "meu": float(policy.value(None, steps - h)),
            "practice": float(practised[steps - h]),
        }
        for h in horizons
    ]))  # fmt: skip


def _interval(value: float, low: float, high: float) -> dict[str, float]:
    return {"value": value, "low": low, "high": high}
