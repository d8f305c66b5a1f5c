"""The exact value of a learned policy in an MDP that is given as tables."""

import numpy as np

from rspmn.envs.mdp import MDP
from rspmn.errors import DataError
from rspmn.infer.policy import Policy
from rspmn.types import Ints


def policy_array(mdp: MDP, policy: Policy, horizon: int) -> Ints:  # [horizon, S]
    """Return the action of a policy in each state of an MDP at each time.

    In states that its model never saw it is `policy.otherwise` or, without one, the first action.
    """
    names = mdp.schema.state_variables
    states = {name: [state[k] for state in mdp.states] for k, name in enumerate(names)}
    number = {action: index for index, action in enumerate(mdp.actions)}
    first = dict(zip(mdp.schema.decisions, mdp.actions[0], strict=True))
    found = np.empty((horizon, len(mdp.states)), dtype=np.int64)
    otherwise = first if policy.otherwise is None else policy.otherwise
    plan = policy.plan(states, range(horizon), otherwise=otherwise)
    for t, acts in enumerate(plan):
        made = acts if isinstance(acts, dict) else {mdp.schema.decisions[0]: acts}
        for state, chosen in enumerate(zip(*(made[d].tolist() for d in made), strict=True)):
            if chosen not in number:
                raise DataError(
                    f"{mdp.name}: the policy chose {chosen}, which is not an action of it"
                )
            found[t, state] = number[chosen]
    return found


def true_value(mdp: MDP, policy: Policy, horizon: int) -> float:
    """Return the exact expected utility of a learned policy over `horizon` steps of an MDP.

    >>> from rspmn.envs.grid_universe import grid_universe
    >>> from rspmn.learn import learn_rspmn
    >>> world = grid_universe()
    >>> model, _ = learn_rspmn(world.generate(episodes=2000, horizon=8, rng=0))
    >>> true_value(world, model.policy(8), 8)
    6.0
    """
    return mdp.evaluate(policy_array(mdp, policy, horizon), horizon)
