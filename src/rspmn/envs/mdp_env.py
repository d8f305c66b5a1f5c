"""An explicit MDP as a Gymnasium environment, and the domains registered as such.

As is Gymnasium's custom, they are known once this module is imported, which the name can ask for:
`gymnasium.make("rspmn.envs.mdp_env:rspmn/Elevators-v0")`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rspmn.envs.domains import WORLDS
from rspmn.envs.mdp import MDP
from rspmn.errors import EvidenceError, MissingExtraError, did_you_mean
from rspmn.values import Value, show

try:
    import gymnasium
    from gymnasium import spaces
except ImportError:
    raise MissingExtraError("MDPEnv needs gymnasium: pip install 'rspmn[gym]'") from None


METADATA: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}


class MDPEnv(gymnasium.Env[Any, Any]):
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

    metadata = METADATA

    def __init__(self, mdp: MDP, render_mode: str | None = None) -> None:
        if render_mode not in (None, *METADATA["render_modes"]):
            raise EvidenceError(
                f"MDPEnv: render_mode is None or one of {METADATA['render_modes']}, "
                f"found {render_mode!r}"
            )
        self.mdp, self.render_mode = mdp, render_mode
        names = mdp.schema.information_sets[0]
        self.values: dict[str, list[Value]] = {
            name: sorted({state[k] for state in mdp.states}, key=_order)
            for k, name in enumerate(names)
        }
        codes = [
            {value: code for code, value in enumerate(values)} for values in self.values.values()
        ]
        self._observations = np.array(
            [[code[v] for code, v in zip(codes, s, strict=True)] for s in mdp.states],
            dtype=np.int64,
        )
        sizes = [len(values) for values in self.values.values()]
        self.observation_space = (
            spaces.Discrete(sizes[0]) if len(sizes) == 1 else spaces.MultiDiscrete(sizes)
        )
        self.action_space = spaces.Discrete(len(mdp.actions))
        self._number = {action: number for number, action in enumerate(mdp.actions)}
        self._at: int | None = None  # the state, while an episode is under way
        self._shown = ""

    # ---- values and their codes ----------------------------------------------------

    def state(self, observation: Any) -> dict[str, Value]:
        """Return the values that an observation stands for, as `Policy.act` takes them."""
        codes = np.atleast_1d(observation).tolist()
        return {n: v[code] for (n, v), code in zip(self.values.items(), codes, strict=True)}

    def decisions(self, action: int) -> dict[str, Value]:
        """Return the decisions that an action stands for."""
        if not self.action_space.contains(action):
            raise EvidenceError(f"MDPEnv: expected a {self.action_space}, found {action!r}")
        return dict(zip(self.mdp.schema.decisions, self.mdp.actions[int(action)], strict=True))

    def action(self, decisions: Mapping[str, Value] | Value) -> int:
        """Return the action for some decisions; if there is only one, its value will do."""
        names = self.mdp.schema.decisions
        if not isinstance(decisions, Mapping):
            decisions = {names[0]: decisions}
        made = tuple(decisions.get(name) for name in names)
        for known, number in self._number.items():
            if known == made:
                return number
        shown = ", ".join(f"{name}={value!r}" for name, value in decisions.items())
        one = len(names) == 1
        known_values = [action[0] if one else action for action in self.mdp.actions]
        hint = did_you_mean(made[0] if one else made, known_values)
        raise EvidenceError(f"MDPEnv: {shown} is no action: {hint}")

    # ---- episodes ------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; the same seed and actions draw the same one. There are no options."""
        super().reset(seed=seed, options=options)
        self._at = int(self.np_random.choice(len(self.mdp.start), p=self.mdp.start))
        self._shown = self._written(self._at)
        return self._observe(self._at), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Make the decisions of one step."""
        if self._at is None:
            raise gymnasium.error.ResetNeeded("MDPEnv: no episode is under way: call reset first")
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
        text = ", ".join(f"{name}={show(value)}" for name, value in made.items())
        self._shown = f"{text} earned {show(reward)}, then {self._written(after)}"
        return self._observe(after), reward, terminated, False, {}

    def render(self) -> Any:
        """Return the last step as text, in mode "ansi"."""
        return f"{self._shown}\n" if self.render_mode == "ansi" else None

    def _observe(self, state: int) -> Any:
        found = self._observations[state]
        return np.int64(found[0]) if len(found) == 1 else found.copy()

    def _written(self, state: int) -> str:
        pairs = zip(self.values, self.mdp.states[state], strict=True)
        return ", ".join(f"{name}={show(value)}" for name, value in pairs)


def make_env(name: str, **options: Any) -> MDPEnv:
    """Return the environment of a domain."""
    return MDPEnv(WORLDS[name](), **options)


def _order(value: Value) -> tuple[str, Any]:
    """Sort values of one type as they are, whatever the type."""
    return type(value).__name__, value


#: The paper's number of steps, after which an episode is truncated.
STEPS = {
    "GridUniverse": 8, "FrozenLake": 8, "Maze": 8, "Taxi": 50, "SkillTeaching": 10,
    "Elevators": 10, "CrossingTraffic": 15, "SysAdmin": 20,
}  # fmt: skip

for _name, _steps in STEPS.items():  # the worlds themselves are made when they are asked for
    if f"rspmn/{_name}-v0" not in gymnasium.registry:
        gymnasium.register(
            id=f"rspmn/{_name}-v0",
            entry_point="rspmn.envs.mdp_env:make_env",
            max_episode_steps=_steps,
            kwargs={"name": _name},
        )
