"""Explicit MDPs: given as tables, so that values are exact and logs are generated fast."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.data.episodes import Episodes
from rspmn.envs.logs import Layout, draw_log
from rspmn.errors import CircuitError, DataError
from rspmn.schema import Kind, Schema
from rspmn.types import Array, Bools, Ints
from rspmn.values import Value

#: The values of several variables at once: of a state, or of an action.
Joint = tuple[Value, ...]

#: Actions whose values differ by less than this share of them tie: the first is taken.
TIE = 1e-9

#: The fields that hold arrays.
ARRAYS = {
    "indptr": np.int64, "successors": np.int64, "probabilities": np.float64,
    "rewards": np.float64, "start": np.float64, "terminal": np.bool_, "behaviour": np.float64,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class MDP:
    """A Markov decision process with S states and A actions, as sparse tables.

    Row `s * A + a` holds what may follow action a in state s: the transitions
    `indptr[row]:indptr[row + 1]`. Terminal states stay as they are and earn nothing. A policy is
    an array: action indices [horizon, S], probabilities [horizon, S, A] or, the same at every
    step, [S, A]; None is the policy that the log is made with.
    """

    name: str
    schema: Schema  # with the kind of every variable; states are known before the first decision
    states: tuple[Joint, ...]  # [S], values of the schema's state variables
    actions: tuple[Joint, ...]  # [A], values of the schema's decisions
    indptr: Ints  # [S * A + 1]
    successors: Ints  # [num_transitions]
    probabilities: Array  # [num_transitions], positive, sum to 1 per row
    rewards: Array  # [num_transitions]
    start: Array  # [S], sums to 1
    terminal: Bools  # [S]
    episodes: int  # the paper's E: how many episodes its log has
    horizon: int  # the paper's T: how many steps each has
    behaviour: Array | None = None  # [S, A], the logging policy; None: uniform

    def __post_init__(self) -> None:
        for name, dtype in ARRAYS.items():
            if getattr(self, name) is not None:
                array: NDArray[Any] = np.array(getattr(self, name), dtype=dtype)
                array.setflags(write=False)  # domains are built once and shared
                object.__setattr__(self, name, array)
        _check_names(self)
        _check_shapes(self)
        _check_numbers(self)

    def __repr__(self) -> str:
        return f"MDP({self.name}, {len(self.states)} states, {len(self.actions)} actions)"

    # ---- exact values --------------------------------------------------------------

    def value_iteration(self, horizon: int, discount: float = 1.0) -> tuple[Array, Ints]:
        """Return the optimal values [S] with `horizon` steps to go, and a policy [horizon, S].

        `policy[t]` is the action at time t, the first of those that tie.
        """
        values = np.zeros(len(self.states))
        policy = np.zeros((_at_least(0, horizon, "horizon"), len(self.states)), dtype=np.int64)
        for t in reversed(range(horizon)):
            worth = self._worth(values, discount)
            values = worth.max(axis=1)
            near = values - TIE * np.abs(values)
            policy[t] = np.argmax(worth >= near[:, None], axis=1)
        return values, policy

    def action_values(self, horizon: int, discount: float = 1.0) -> Array:
        """Return the value of each action in each state with `horizon` steps to go, [S, A]."""
        after, _ = self.value_iteration(_at_least(1, horizon, "horizon") - 1, discount)
        return self._worth(after, discount)

    def optimum(self, horizon: int, discount: float = 1.0) -> float:
        """Return the best expected return of `horizon` steps from the start."""
        return float(self.start @ self.value_iteration(horizon, discount)[0])

    def evaluate(self, policy: NDArray[Any] | None, horizon: int, discount: float = 1.0) -> float:
        """Return the exact expected return of a policy from the start."""
        chances = self._chances(policy, _at_least(0, horizon, "horizon"))
        values = np.zeros(len(self.states))
        for t in reversed(range(horizon)):
            values = (chances(t) * self._worth(values, discount)).sum(axis=1)
        return float(self.start @ values)

    @cached_property
    def _matrix(self) -> Any:  # a scipy.sparse array, [S * A, S]
        from scipy.sparse import csr_array

        shape = (len(self.states) * len(self.actions), len(self.states))
        return csr_array((self.probabilities, self.successors, self.indptr), shape=shape)

    @cached_property
    def _expected_rewards(self) -> Array:  # [S * A]
        return np.add.reduceat(self.probabilities * self.rewards, self.indptr[:-1])

    def _worth(self, later: Array, discount: float) -> Array:
        """Return the value of each action if the next states have the values `later`, [S, A]."""
        worth = self._expected_rewards + discount * (self._matrix @ later)
        return np.asarray(worth).reshape(len(self.states), len(self.actions))

    def _chances(self, policy: NDArray[Any] | None, horizon: int) -> Callable[[int], Array]:
        """Return the function that gives the policy's probabilities [S, A] at step t."""
        S, A = len(self.states), len(self.actions)
        if policy is None:
            policy = np.full((S, A), 1 / A) if self.behaviour is None else self.behaviour
        policy = np.asarray(policy)
        if policy.dtype.kind in "iu" and policy.ndim == 2:
            fits = len(policy) >= horizon and policy.shape[1] == S
            if fits and np.all((policy >= 0) & (policy < A)):
                return lambda t: np.eye(A)[policy[t]]
        elif policy.shape == (S, A) and _is_stochastic(policy):
            return lambda _: policy
        elif policy.shape[1:] == (S, A) and len(policy) >= horizon and _is_stochastic(policy):
            return lambda t: np.asarray(policy[t])
        raise DataError(
            f"{self.name}: a policy is action indices below {A} in an array [{horizon}, {S}], or "
            f"probabilities [{horizon}, {S}, {A}] or [{S}, {A}] that sum to 1, "
            f"found {policy.dtype} {list(policy.shape)}"
        )

    # ---- logs ----------------------------------------------------------------------

    def generate(
        self,
        episodes: int,
        horizon: int,
        rng: np.random.Generator | int,
        layout: Layout = "flags",
        policy: NDArray[Any] | None = None,
    ) -> Episodes:
        """Generate a log. The same seed gives the same moves in every layout.

        Parameters
        ----------
        episodes, horizon
            How many episodes, and how many steps each has at most.
        rng
            A generator or a seed.
        layout
            How it shows that an episode ended. "flags": it stops on entering a terminal state,
            followed by END; one that reaches the horizon first is followed by UNKNOWN. "final":
            the same, but one that reaches the horizon is followed by the state that it reached.
            "padded", the paper's: every episode has `horizon` steps, those in a terminal state
            earn 0, and it is UNKNOWN what follows. "terminal_row": the same, but an episode
            stops after its first step in a terminal state, followed by END.
        policy
            The acting policy; by default the domain's logging policy.
        """
        _at_least(1, episodes, "episodes")
        chances = self._chances(policy, _at_least(1, horizon, "horizon"))
        return draw_log(self, episodes, horizon, np.random.default_rng(rng), layout, chances)


def _at_least(least: int, number: int, what: str) -> int:
    if number < least:
        raise DataError(f"{what}: expected {least} or more, found {number}")
    return number


def _is_stochastic(chances: NDArray[Any]) -> bool:
    return bool(np.all(chances >= 0) and np.allclose(chances.sum(axis=-1), 1))


# ---- checks --------------------------------------------------------


def _check_names(mdp: MDP) -> None:
    """Check the schema, the states and the actions."""
    schema = mdp.schema
    if schema.state_variables != schema.information_sets[0]:
        later = [n for n in schema.state_variables if n not in schema.information_sets[0]]
        raise CircuitError(f"{mdp.name}: {later[0]!r} is observed after a decision, not before")
    unknown = [name for name in schema.variables if name not in schema.kinds]
    if unknown:
        raise CircuitError(f"{mdp.name}: the schema has no kind for {unknown[0]!r}")
    if schema.kinds[schema.utility] is not Kind.CONTINUOUS:
        raise CircuitError(
            f"{mdp.name}: expected a continuous utility, found {schema.kinds[schema.utility]}"
        )
    groups = (
        ("state", mdp.states, schema.state_variables),
        ("action", mdp.actions, schema.decisions),
    )
    for what, joints, names in groups:
        if not joints:
            raise CircuitError(f"{mdp.name}: expected at least one {what}, found none")
        odd = next((joint for joint in joints if len(joint) != len(names)), None)
        if odd is not None:
            raise CircuitError(f"{mdp.name}: {what} {odd} does not give values to {list(names)}")
        if len(set(joints)) < len(joints):
            twice = next(joint for k, joint in enumerate(joints) if joint in joints[:k])
            raise CircuitError(f"{mdp.name}: {what} {twice} is a duplicate")


def _check_shapes(mdp: MDP) -> None:
    S, A, edges = len(mdp.states), len(mdp.actions), len(mdp.successors)
    shapes: dict[str, tuple[int, ...]] = {"indptr": (S * A + 1,), "start": (S,), "terminal": (S,)}
    shapes |= {"probabilities": (edges,), "rewards": (edges,)}
    shapes |= {} if mdp.behaviour is None else {"behaviour": (S, A)}
    for name, shape in shapes.items():
        found = np.shape(getattr(mdp, name))
        if found != shape:
            raise CircuitError(f"{mdp.name}: {name} has shape {found}, expected {shape}")
    empty = np.flatnonzero(np.diff(mdp.indptr) <= 0)
    if len(empty):
        raise CircuitError(f"{mdp.name}: nothing follows {_row(mdp, int(empty[0]))}")
    if mdp.indptr[0] != 0 or mdp.indptr[-1] != edges:
        ends = int(mdp.indptr[0]), int(mdp.indptr[-1])
        raise CircuitError(f"{mdp.name}: indptr goes from {ends[0]} to {ends[1]}, not 0 to {edges}")
    if np.any((mdp.successors < 0) | (mdp.successors >= S)):
        raise CircuitError(f"{mdp.name}: a successor is none of the {S} states")


def _check_numbers(mdp: MDP) -> None:
    if not (np.all(mdp.probabilities > 0) and np.all(np.isfinite(mdp.rewards))):
        raise CircuitError(f"{mdp.name}: expected positive probabilities and finite rewards")
    sums = np.add.reduceat(mdp.probabilities, mdp.indptr[:-1])
    wrong = np.flatnonzero(np.abs(sums - 1) > 1e-9)
    if len(wrong):
        where = _row(mdp, int(wrong[0]))
        raise CircuitError(f"{mdp.name}: what follows {where} sums to {sums[wrong[0]]:g}, not 1")
    if not _is_stochastic(mdp.start) or np.any(mdp.start[mdp.terminal] > 0):
        raise CircuitError(f"{mdp.name}: start must sum to 1 over states that are not terminal")
    if mdp.behaviour is not None and not _is_stochastic(mdp.behaviour):
        raise CircuitError(f"{mdp.name}: behaviour must sum to 1 in each state")
    states = np.repeat(np.arange(len(mdp.states)), np.diff(mdp.indptr[:: len(mdp.actions)]))
    moves = mdp.terminal[states] & ((mdp.successors != states) | (mdp.rewards != 0))
    if moves.any():
        state = mdp.states[states[np.argmax(moves)]]
        raise CircuitError(f"{mdp.name}: terminal state {state} must stay as it is and earn 0")


def _row(mdp: MDP, row: int) -> str:
    state, action = divmod(row, len(mdp.actions))
    return f"action {mdp.actions[action]} in state {mdp.states[state]}"
