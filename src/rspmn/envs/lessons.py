"""Lessons: skills that build on each other, a learner that tires, rewards that tell what happened.

Not one of the paper's domains. What a lesson earns varies, and shows whether it succeeded: a log in
which each state and decision occurs a few times makes some of them look certain to succeed.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import product

import numpy as np

from rspmn.envs.explore import explore
from rspmn.envs.mdp import MDP
from rspmn.schema import Schema

REST = "rest"
#: The chance of a lesson, by whether the learner is tired; and if the skill before it is lacking.
FRESH, TIRED, LACKING = 0.75, 0.25, 0.3
#: From this level on the next skill can be learned; lessons in a row that tire; the most counted.
ENOUGH, TIRES, MOST = 3, 3, 5


@lru_cache(maxsize=4)
def lessons(skills: int = 3, levels: int = 6) -> MDP:
    """Return the world: teach a skill, or let the learner rest.

    A lesson raises its skill by a level with probability .75, or .25 after three lessons without
    rest; with three tenths of that if the skill before it is below level 3. A level of the k-th
    skill earns 2ᵏ⁻¹. The log is of a teacher who mostly teaches the first skill below level 3.

    >>> lessons(skills=1, levels=2).optimum(1)  # at level 0 or 1 of 0 to 2, with .75 a level more
    0.5
    """
    names = [f"skill{k + 1}" for k in range(skills)]
    schema = Schema(
        [[*names, "tired"], ["teach"]], ["teach"], "reward",
        dict.fromkeys([*names, "tired"], "integer") | {"teach": "categorical"}
        | {"reward": "continuous"},
    )  # fmt: skip
    first = [*product(range(min(ENOUGH, levels) + 1), repeat=skills)]
    actions = [*names, REST]

    def outcomes(
        state: tuple[int, ...], action: tuple[str]
    ) -> Iterator[tuple[float, tuple[int, ...], float]]:
        *level, tired = state
        if action[0] == REST:
            yield 1.0, (*level, 0), 0.0
            return
        k, after = names.index(action[0]), min(tired + 1, MOST)
        ready = k == 0 or level[k - 1] >= ENOUGH
        chance = (TIRED if tired >= TIRES else FRESH) * (1.0 if ready else LACKING)
        if level[k] == levels:
            chance = 0.0
        else:
            raised = (*level[:k], level[k] + 1, *level[k + 1 :], after)
            yield chance, raised, 2.0**k
        yield 1 - chance, (*level, after), 0.0

    found = explore(
        "Lessons", schema, {(*s, 0): 1 / len(first) for s in first}, [(a,) for a in actions],
        outcomes, episodes=1_000, horizon=12,
    )  # fmt: skip
    below = np.array(found.states)[:, :skills] < ENOUGH
    usual = np.where(below.any(axis=1), below.argmax(axis=1), skills - 1)  # [states]
    behaviour = np.full((len(found.states), len(actions)), 0.4 / len(actions))
    behaviour[np.arange(len(usual)), usual] += 0.6
    return replace(found, behaviour=behaviour)
