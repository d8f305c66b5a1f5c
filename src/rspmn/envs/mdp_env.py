"""An explicit MDP as a Gymnasium environment, and the domains registered as such.

As is Gymnasium's custom, they are known once this module is imported, which the name can ask for:
`gymnasium.make("rspmn.envs.mdp_env:rspmn/Elevators-v0")`.
"""

from typing import Any

import numpy as np

from rspmn.envs.coded_env import CategoryCode, CodedEnv, in_order, register, written
from rspmn.envs.domains import WORLDS
from rspmn.envs.mdp import MDP
from rspmn.values import Value, show


class MDPEnv(CodedEnv):
    """A world given as tables, to act in.

    An observation is the state: for one variable the index of its value (`Discrete`), for several
    an array of indices (`MultiDiscrete`); `values` lists each variable's, sorted. An action is the
    index of one of `mdp.actions`, which holds the values of all decisions of a step. An episode
    terminates on entering a terminal state; when made by `gymnasium.make` it is truncated after
    the paper's number of steps.

    >>> from rspmn.envs.maze import maze
    >>> env = MDPEnv(maze())
    >>> observation, info = env.reset(seed=0)
    >>> env.state(observation)
    {'x': 0, 'y': 0}
    >>> observation, reward, terminated, truncated, info = env.step(env.action("E"))
    >>> observation.tolist(), round(reward, 4), terminated
    ([1, 0], -0.0111, False)
    """

    def __init__(self, mdp: MDP, render_mode: str | None = None) -> None:
        self.mdp = mdp
        names = mdp.schema.information_sets[0]
        observed = {
            name: CategoryCode(in_order(state[k] for state in mdp.states))
            for k, name in enumerate(names)
        }
        self.values = {name: coding.values for name, coding in observed.items()}
        parts = [(mdp.schema.decisions, mdp.actions)]
        super().__init__(observed, parts, as_dict=False, render_mode=render_mode)
        self._observations = [self.observation(self._values_of(k)) for k in range(len(mdp.states))]
        self._at: int | None = None  # the state, while an episode is under way

    # ---- episodes ------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; the same seed and actions draw the same one. There are no options."""
        super().reset(seed=seed, options=options)
        self._at = int(self.np_random.choice(len(self.mdp.start), p=self.mdp.start))
        self._shown = written(self._values_of(self._at))
        return self._observations[self._at].copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Make the decisions of one step."""
        if self._at is None:
            raise self.reset_needed()
        made, mdp = self.decisions(action), self.mdp
        row = self._at * len(mdp.actions) + int(action)
        first, last = int(mdp.indptr[row]), int(mdp.indptr[row + 1])
        drawn = np.searchsorted(
            np.cumsum(mdp.probabilities[first:last]), self.np_random.random(), side="right"
        )
        place = min(first + int(drawn), last - 1)
        after, reward = int(mdp.successors[place]), float(mdp.rewards[place])
        terminated = bool(mdp.terminal[after])
        self._at = None if terminated else after
        follows = written(self._values_of(after))
        self._shown = f"{written(made)} earned {show(reward)}, then {follows}"
        return self._observations[after].copy(), reward, terminated, False, {}

    def _values_of(self, state: int) -> dict[str, Value]:
        return dict(zip(self.values, self.mdp.states[state], strict=True))


def make_env(name: str, **options: Any) -> MDPEnv:
    """Return the environment of a domain."""
    return MDPEnv(WORLDS[name](), **options)


#: The paper's number of steps, after which an episode is truncated.
STEPS = {
    "GridUniverse": 8, "FrozenLake": 8, "Maze": 8, "Taxi": 50, "SkillTeaching": 10,
    "Elevators": 10, "CrossingTraffic": 15, "SysAdmin": 20,
}  # fmt: skip

for _name, _steps in STEPS.items():  # the worlds themselves are made when they are asked for
    register(_name, "rspmn.envs.mdp_env:make_env", _steps)
