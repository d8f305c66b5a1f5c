"""Plain forms of queries, one step or decision at a time, that tests compare with."""

from collections.abc import Sequence

import numpy as np

from rspmn import Episodes, Policy
from rspmn.data.episodes import Followed
from rspmn.errors import EvidenceError
from rspmn.infer import Decide
from rspmn.infer.bellman import future_values, update
from rspmn.infer.evaluation import Evaluation, evaluate
from rspmn.infer.evidence import Known
from rspmn.infer.meu import ExpectedUtility, meu
from rspmn.model import RSPMN, Evidence
from rspmn.types import Array
from rspmn.values import END, UNKNOWN, Value


def settled(
    model: RSPMN, horizon: int, discount: float = 1.0
) -> tuple[Array, Array, Array]:  # [horizon + 1, interfaces] each
    """Return values with 0, 1, … steps to go, delays and supported shares, by all updates."""
    bellman, size = model.bellman, model.num_interfaces
    values, delays = np.zeros((2, horizon + 1, size))
    supports = np.ones((horizon + 1, size))
    for h in range(1, horizon + 1):
        found = bellman.choose(values[h - 1], delays[h - 1], discount, h == 1)
        values[h], delays[h] = bellman.settle(found)
        supports[h] = bellman.supports(found, supports[h - 1], discount, h == 1)[0]
    return values, delays, supports


def evaluate_from_start(
    model: RSPMN, steps: Sequence[Evidence], horizon: int, discount: float = 1.0
) -> Evaluation:
    """Return likelihood and utility from the start, with evidence on any of the first steps."""
    if len(steps) > horizon:
        raise EvidenceError(f"evidence on {len(steps)} steps, but the horizon is {horizon}")
    future = future_values(model, horizon - len(steps), discount)
    for step in reversed(steps):
        future = update(model, future, discount, step)
    return evaluate(model.top, {}, future.roots)[model.top.root]


def meu_of_network(
    model: RSPMN, state: Evidence | None, horizon: int, discount: float = 1.0
) -> ExpectedUtility:
    """Return the maximum expected utility by one pass of the network of a step."""
    network = model.from_start if state is None else model.from_anywhere
    future = future_values(model, horizon - 1, discount)
    return meu(network, state, future.discounted(discount))


def evidence_of(episodes: Episodes, episode: int) -> list[Evidence]:
    """Return an episode as evidence: its steps without utilities, then what followed."""
    names = [name for name in episodes.schema.variables if name != episodes.schema.utility]
    steps: list[Evidence] = [
        {name: step[name] for name in names} for step in episodes.steps(episode)
    ]
    final = episodes.final_state(episode)
    if final is not None:
        steps.append(final)
    elif episodes.endings[episode] == Followed.END:
        steps.append(dict.fromkeys(names, END))
    return steps


def by_policy(policy: Policy, horizon: int) -> Decide:
    """Return the decisions of a policy in episodes of `horizon` steps; UNKNOWN if not offered."""

    def decide(decision: str, offered: Sequence[Value], known: Known, steps_to_go: int) -> Value:
        made = policy.act(known, horizon - steps_to_go)
        value: Value = made[decision] if isinstance(made, dict) else made
        return value if value in offered else UNKNOWN

    return decide
