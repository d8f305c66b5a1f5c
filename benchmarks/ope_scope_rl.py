"""Off-policy estimates side by side with SCOPE-RL, on the same ratios and the same model.

Needs `pip install scope-rl`, which is no dependency of this project: it brings torch and d3rlpy.
`python benchmarks/ope_scope_rl.py` prints values and intervals of both. SCOPE-RL takes episodes of
one length: shorter ones are padded here with steps that earn nothing and have a ratio of 1.
"""

import argparse
from time import process_time
from typing import Any

import numpy as np
from scope_rl.ope.discrete import (
    DoublyRobust,
    PerDecisionImportanceSampling,
    SelfNormalizedDR,
    SelfNormalizedPDIS,
)

from rspmn import learn_rspmn
from rspmn.envs.domains import WORLDS
from rspmn.evaluate import Mixture, Planned, Uniform, off_policy
from rspmn.evaluate.logged import logged_steps
from rspmn.evaluate.target_on_log import TargetOnLog

#: World, episodes of the log, their steps.
CASES = [("SysAdmin", 300, 10), ("FrozenLake", 10_000, 8), ("Taxi", 1_000, 20)]
THEIRS = {
    "importance sampling": PerDecisionImportanceSampling,
    "weighted importance sampling": SelfNormalizedPDIS,
    "doubly robust": DoublyRobust,
    "weighted doubly robust": SelfNormalizedDR,
}


def padded(found: TargetOnLog) -> dict[str, Any]:
    """Return the log as SCOPE-RL takes it: one length, one row for each step."""
    steps, horizon = found.steps, found.horizon
    size, decisions = steps.episodes * horizon, len(steps.situations.decisions)
    action, reward, pscore = np.zeros(size, np.int64), np.zeros(size), np.ones(size)
    dist, worth = np.zeros((size, decisions)), np.zeros((size, decisions))
    dist[:, 0] = 1.0
    for t, rows in found.weighable.times():
        row = found.order[rows]
        at = steps.episode[row] * horizon + t
        action[at], pscore[at] = steps.made[row], found.behaviour[row]
        reward[at] = found.weighable.reward[rows]
        dist[at], worth[at] = found.of_time(t)[steps.state[row]], found.worth(t)[steps.state[row]]
    return {
        "step_per_trajectory": horizon, "action": action, "reward": reward, "pscore": pscore,
        "evaluation_policy_action_dist": dist, "state_action_value_prediction": worth,
        "gamma": 1.0,
    }  # fmt: skip


def main() -> None:
    """Print a table for each world."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=0.7, help="of uniform decisions")
    share = parser.parse_args().share
    print(
        "| world | estimator | rspmn | interval | SCOPE-RL | interval | seconds: rspmn, SCOPE-RL |"
    )
    print("|---|---|--:|--:|--:|--:|--:|")
    for name, episodes, horizon in CASES:
        log = WORLDS[name]().generate(episodes, horizon, 0)
        model, _ = learn_rspmn(log)
        target = Mixture(Planned(model.policy(horizon)), Uniform(), share)
        began = process_time()
        ours = off_policy(model, log, target, horizon, draws=2)
        seconds = process_time() - began
        found = TargetOnLog(model, logged_steps(model, log), target, horizon, 1.0, None)
        arrays = padded(found)
        for method, make in THEIRS.items():
            began = process_time()
            value = make().estimate_policy_value(**arrays)
            low_high = make().estimate_interval(**arrays, n_bootstrap_samples=100, random_state=0)
            low, high = (v for k, v in low_high.items() if "lower" in k or "upper" in k)
            mine = ours[method]
            print(
                f"| {name} | {method} | {mine.value:.6g} | {mine.low:.4g} to {mine.high:.4g} | "
                f"{value:.6g} | {low:.4g} to {high:.4g} | {seconds:.2f}, "
                f"{process_time() - began:.2f} |"
            )


if __name__ == "__main__":
    main()
