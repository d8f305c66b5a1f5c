"""The distribution of the return of a policy, exact in the model or simulated."""

import math
from dataclasses import replace

import numpy as np

from rspmn.data.keys import group_weights
from rspmn.end_nodes import weighted_top
from rspmn.errors import EvidenceError
from rspmn.explain.outcome_rows import OutcomeRows
from rspmn.explain.policy_stages import PolicyStages
from rspmn.explain.return_distribution import ReturnDistribution
from rspmn.infer.bellman import check_steps
from rspmn.infer.policy import Policy
from rspmn.types import Array

#: Episodes are drawn where what a step earns cannot be told apart by outcome.
EPISODES = 10_000


def policy_returns(
    policy: Policy,
    horizon: int | None,
    state: object,
    t: int,
    episodes: int | None,
    rng: np.random.Generator,
    points: int,
) -> ReturnDistribution:
    """Return the distribution of the return of a policy; see `Policy.returns`."""
    planned = policy.planned
    left = None if policy.horizon is None else planned.after(t) + 1
    steps = left if horizon is None else check_steps(horizon, least=1)
    if steps is None or (left is not None and steps > left):
        expected = "a number of steps" if left is None else f"at most {left} steps"
        raise EvidenceError(f"returns: expected {expected} as horizon, found {horizon}")
    start = policy.nodes(state)
    if not start.any():
        raise EvidenceError("returns: this state was never observed")
    if episodes is None and OutcomeRows.serves(policy.model.template):
        afters = [planned.after(t + k) for k in range(steps)]
        rows = OutcomeRows(policy.model, planned.offers)
        return PolicyStages(rows, planned, afters).distribution(start, points)
    now = Policy(policy.model, left, policy.discount, policy.otherwise, criterion=policy.criterion)
    return simulated_returns(now, start, steps, episodes or EPISODES, rng)


def simulated_returns(
    policy: Policy, start: Array, steps: int, episodes: int, rng: np.random.Generator
) -> ReturnDistribution:
    """Return the returns of drawn episodes, in which the policy acts on the states that it sees."""
    model = replace(policy.model, top=weighted_top((start / start.sum()).tolist()))
    log = model.sample(episodes, steps, rng, policy)
    earned = log.columns[model.schema.utility].data
    time = np.arange(len(earned)) - np.repeat(log.offsets[:-1], log.lengths)
    of_episode = np.repeat(np.arange(len(log)), log.lengths)
    found = group_weights(of_episode, earned * policy.discount**time, len(log))
    values, counts = np.unique(found, return_counts=True)
    return ReturnDistribution(values, counts / len(found), steps, math.nan, len(found))
