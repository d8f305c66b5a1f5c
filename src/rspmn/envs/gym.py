"""A model as a Gymnasium environment: its template is the world, drawn step by step.

What reinforcement learning says of a model can so be compared with what the model says itself.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rspmn.circuit import (
    Latent,
    Leaf,
    Max,
    Network,
    Node,
    Sum,
    fold_up,
    walk_down,
)
from rspmn.errors import EvidenceError, MissingExtraError, did_you_mean
from rspmn.infer.sample import Draw
from rspmn.model import RSPMN
from rspmn.schema import Kind, Schema
from rspmn.values import Mark, Value, show

try:
    import gymnasium
    from gymnasium import spaces
except ImportError:
    raise MissingExtraError("ModelEnv needs gymnasium: pip install 'rspmn[gym]'") from None


#: For each state variable the index of a category, or a number in an array of one.
Observation = dict[str, Any]
#: The index of each decision's value, in the order of the schema.
Codes = tuple[int, ...]

METADATA: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}


class ModelEnv(gymnasium.Env[Observation, Any]):
    """A Gymnasium environment that is drawn from a model.

    An episode starts as the top network has it. Each step makes all decisions and earns a utility
    drawn around its mean with its variance. It terminates at END. It is truncated after `horizon`
    steps, and wherever the model does not know what follows: there `info["unknown"]` is True. That
    is so at a successor that was not logged, in a state in which no decision is known, and after a
    decision that is not offered in the state, which earns 0. Where no state follows, the last
    observation stands again.

    The actions are `Discrete` with one decision and `MultiDiscrete` with several: indices of the
    sorted values that the model offers anywhere. `info["offered"]` lists the actions that it offers
    in this state; with one decision `info["action_mask"]` says the same as Gymnasium has it, for
    `env.action_space.sample(mask)`. If a schema has variables that are seen after the last
    decision, a step gives them as `info["seen"]`.

    Observations are a `Dict` of the state variables: `Discrete` for categories, indices of their
    sorted values, and `Box` for continuous variables and for integers in histograms.

    Parameters
    ----------
    model
        The model. Its state must be known before the first decision.
    horizon
        After so many steps an episode is truncated; without it, never for its length.
    render_mode
        None, or "ansi": `render` returns the last step as text.

    >>> from rspmn.envs.paper_grid import paper_grid
    >>> env = ModelEnv(paper_grid(), horizon=4)
    >>> env.action_space, env.observation_space
    (Discrete(5), Dict('x': Discrete(2), 'y': Discrete(2)))
    >>> policy = env.model.policy(horizon=4)
    >>> observation, info = env.reset(seed=1)
    >>> env.state(observation)
    {'x': 0, 'y': 0}
    >>> action = env.action(policy.act(env.state(observation), t=0))
    >>> action, env.decisions(action), info["action_mask"]
    (0, {'action': 'down'}, array([1, 1, 1, 1, 1], dtype=int8))
    >>> observation, reward, terminated, truncated, info = env.step(action)
    >>> env.state(observation), reward, terminated, truncated
    ({'x': 0, 'y': 1}, -1.0, False, False)
    """

    metadata = METADATA

    def __init__(
        self, model: RSPMN, horizon: int | None = None, render_mode: str | None = None
    ) -> None:
        _check_order(model.schema)
        if horizon is not None and (not isinstance(horizon, int | np.integer) or horizon < 1):
            raise EvidenceError(f"ModelEnv: expected a horizon of 1 or more, found {horizon!r}")
        if render_mode not in (None, *METADATA["render_modes"]):
            raise EvidenceError(
                f"ModelEnv: render_mode is None or one of {METADATA['render_modes']}, "
                f"found {render_mode!r}"
            )
        self.model, self.horizon, self.render_mode = model, horizon, render_mode
        self._refuse_odd_starts()
        nodes, schema = _nodes_of_states(model), model.schema
        self._values = _decision_values(nodes, schema)
        self._offered = _offered(model.template, self._values)
        sizes = [len(values) for values in self._values.values()]
        self.action_space = (
            spaces.Discrete(sizes[0]) if len(sizes) == 1 else spaces.MultiDiscrete(sizes)
        )
        self._codings = {n: _coding(n, nodes, schema) for n in schema.information_sets[0]}
        self.observation_space = spaces.Dict({n: c.space() for n, c in self._codings.items()})
        self._under_way: Draw | None = None  # only while an episode is
        self._state: dict[str, Value] = {}
        self._steps = 0
        self._shown = ""

    def _refuse_odd_starts(self) -> None:
        top = self.model.top
        nodes = walk_down(top, {top.root: None}, lambda _, node, __: _children(node))
        starts = {n.interface for i in nodes if isinstance(n := top.nodes[i], Latent)}
        for mark, interface in (("END", self.model.end), ("UNKNOWN", self.model.unknown)):
            if interface in starts:
                raise EvidenceError(f"ModelEnv: the top network may start an episode in {mark}")

    # ---- values and their codes ----------------------------------------------------

    def state(self, observation: Observation) -> dict[str, Value]:
        """Return the values that an observation stands for, as `Policy.act` takes them."""
        return {name: code.value(observation[name]) for name, code in self._codings.items()}

    def decisions(self, action: Any) -> dict[str, Value]:
        """Return the decisions that an action stands for."""
        codes = self._codes(action)
        return {n: v[code] for (n, v), code in zip(self._values.items(), codes, strict=True)}

    def action(self, decisions: Mapping[str, Value] | Value) -> Any:
        """Return the action for some decisions; if there is only one, its value will do."""
        if not isinstance(decisions, Mapping):
            if len(self._values) > 1:
                raise EvidenceError(
                    f"ModelEnv: expected values of {list(self._values)}, found {decisions!r}"
                )
            decisions = {next(iter(self._values)): decisions}
        for name in decisions:
            if name not in self._values:
                hint = did_you_mean(name, self._values)
                raise EvidenceError(f"ModelEnv: unknown decision {name!r}: {hint}")
        codes = []
        for name, values in self._values.items():
            if name not in decisions:
                raise EvidenceError(f"ModelEnv: no value of the decision {name!r}")
            if decisions[name] not in values:
                raise EvidenceError(
                    f"ModelEnv: the model never offers {decisions[name]!r} for {name!r}: "
                    f"{did_you_mean(decisions[name], values)}"
                )
            codes.append(values.index(decisions[name]))
        return codes[0] if len(codes) == 1 else np.array(codes, dtype=np.int64)

    def _codes(self, action: Any) -> Codes:
        if not self.action_space.contains(action):
            raise EvidenceError(f"ModelEnv: expected a {self.action_space}, found {action!r}")
        return tuple(np.atleast_1d(action).tolist())

    # ---- episodes ------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; the same seed and actions draw the same one. There are no options."""
        super().reset(seed=seed, options=options)
        top = Draw(self.model.top, self.model.top.root, self.np_random)
        self._steps = 0
        self._enter(top.interface)
        self._shown = _written(self._state)
        offered = self._offered_here()
        return self._observe(), self._info(offered, unknown=not offered)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Make the decisions of one step."""
        step = self._under_way
        if step is None:
            raise gymnasium.error.ResetNeeded("ModelEnv: no episode is under way: call reset first")
        made, offered = self.decisions(action), self._offered_here()
        self._steps += 1
        self._under_way = None
        for value in made.values():
            if value not in step.decision.values:
                self._shown = f"{_written(made)} is not offered in {_written(self._state)}"
                return self._observe(), 0.0, False, True, self._info(offered, unknown=True)
            step.decide(value)
        utility = step.utilities.get(self.model.schema.utility, 0.0)
        terminated = step.interface == self.model.end
        follows = "END" if terminated else "UNKNOWN"
        if not terminated and step.interface != self.model.unknown:
            self._enter(step.interface)
            follows = _written(self._state)
        offered = self._offered_here()
        unknown = not terminated and not offered
        truncated = unknown or (not terminated and self._steps == self.horizon)
        if truncated:
            self._under_way = None
        self._shown = f"{_written(made)} earned {show(utility)}, then {follows}"
        info = self._info(offered, unknown)
        after = self.model.schema.information_sets[-1]
        if after:
            info["seen"] = {name: step.values[name] for name in after}
        return self._observe(), utility, terminated, truncated, info

    def render(self) -> Any:
        """Return the last step as text, in mode "ansi"."""
        return f"step {self._steps}: {self._shown}\n" if self.render_mode == "ansi" else None

    def _enter(self, interface: int) -> None:
        """Draw the state of an interface node, as far as its first decision."""
        template = self.model.template
        step = self._under_way = Draw(template, template.roots[interface], self.np_random)
        self._state = {name: step.values[name] for name in self._codings}

    def _observe(self) -> Observation:
        return {name: code.coded(self._state[name]) for name, code in self._codings.items()}

    def _offered_here(self) -> list[Codes]:
        step = self._under_way
        return [] if step is None else sorted(self._offered[step.waiting[0]])

    def _info(self, offered: Sequence[Codes], unknown: bool) -> dict[str, Any]:
        info: dict[str, Any] = {"offered": list(offered), "unknown": unknown}
        if isinstance(self.action_space, spaces.Discrete):
            info["offered"] = [code for (code,) in offered]
            info["action_mask"] = np.zeros(self.action_space.n, dtype=np.int8)
            info["action_mask"][info["offered"]] = 1
        return info


# ---- what a model offers -------------------------------------------------------------


def _check_order(schema: Schema) -> None:
    if not schema.decisions:
        raise EvidenceError("ModelEnv: the model has no decision, so there is no action")
    for place, between in enumerate(schema.information_sets[1:-1]):
        if between:
            before, after = schema.decisions[place : place + 2]
            raise EvidenceError(
                f"ModelEnv: {between[0]!r} is seen between the decisions {before!r} and {after!r}, "
                "but an action makes all decisions of a step at once: models of this kind are not "
                "supported; RSPMN.sample asks for each decision by itself"
            )


def _nodes_of_states(model: RSPMN) -> list[Node]:
    """Return all nodes below interface nodes that are states."""
    template = model.template
    marked = (model.end, model.unknown)
    roots = [root for i, root in enumerate(template.roots) if i not in marked]
    reached = walk_down(template, dict.fromkeys(roots), lambda _, node, __: _children(node))
    return [template.nodes[index] for index in sorted(reached)]


def _children(node: Node) -> list[tuple[int, None]]:
    """Return the children that can be drawn, as `walk_down` sends to them."""
    if isinstance(node, Sum):
        pairs = zip(node.children, node.weights, strict=True)
        return [(child, None) for child, weight in pairs if weight > 0]
    return [(child, None) for child in node.children]


def _decision_values(nodes: Sequence[Node], schema: Schema) -> dict[str, tuple[Value, ...]]:
    """Return the values of each decision, in order."""
    found: dict[str, dict[Value, None]] = {name: {} for name in schema.decisions}
    for node in nodes:
        if isinstance(node, Max):
            found[node.decision] |= dict.fromkeys(v for v in node.values if _is_plain(v))
    for name, values in found.items():
        if not values:
            raise EvidenceError(f"ModelEnv: the model knows no value of the decision {name!r}")
    return {name: _in_order(values) for name, values in found.items()}


def _offered(network: Network, values: Mapping[str, Sequence[Value]]) -> list[frozenset[Codes]]:
    """Return what can be decided at and below each node; where chance has a say, in any case."""
    code = {name: {value: k for k, value in enumerate(of)} for name, of in values.items()}

    def offered(node: Node, below: list[frozenset[Codes]]) -> frozenset[Codes]:
        match node:
            case Max():
                pairs = zip(node.values, below, strict=True)
                here = code[node.decision]
                return frozenset((here[v], *then) for v, b in pairs if v in here for then in b)
            case Sum():
                return frozenset[Codes]().union(*below)
            case _:
                parts = itertools.product(*below)
                return frozenset(tuple(itertools.chain(*part)) for part in parts)

    return fold_up(network, offered)


# ---- how a state variable is observed ------------------------------------------------


@dataclass(frozen=True)
class _Categories:
    """The index of a value."""

    values: tuple[Value, ...]

    def space(self) -> spaces.Space[Any]:
        return spaces.Discrete(len(self.values))

    def coded(self, value: Value) -> np.int64:
        return np.int64(self.values.index(value))

    def value(self, coded: Any) -> Value:
        return self.values[int(coded)]


@dataclass(frozen=True)
class _Numbers:
    """The number itself, in an array of one; in single precision it could miss narrow leaves."""

    low: float
    high: float
    dtype: type[np.int64] | type[np.float64]

    def space(self) -> spaces.Space[Any]:
        return spaces.Box(self.low, self.high, (1,), self.dtype)

    def coded(self, value: Value) -> Any:
        # rounding may have drawn a number just outside its leaf
        return np.clip(np.array([value], self.dtype), self.low, self.high)

    def value(self, coded: Any) -> Value:
        number: Value = np.asarray(coded, self.dtype).item()
        return number


def _coding(name: str, nodes: Sequence[Node], schema: Schema) -> _Categories | _Numbers:
    """Return how a variable is observed, by its kind and all its leaves."""
    leaves = [n.distribution for n in nodes if isinstance(n, Leaf) and n.variable == name]
    ends = list(dict.fromkeys(value for leaf in leaves for value in leaf.support()))
    if not all(map(_is_plain, ends)):
        raise EvidenceError(
            f"ModelEnv: {name!r} may be END or UNKNOWN in an interface node that is a state"
        )
    continuous = schema.kinds.get(name) is Kind.CONTINUOUS
    categories = all(leaf.atoms() is not None for leaf in leaves) and not continuous
    if categories or len(ends) == 1:
        return _Categories(_in_order(ends))
    numbers = [value for value in ends if isinstance(value, int | float)]
    if len(numbers) < len(ends):
        raise EvidenceError(f"ModelEnv: {name!r} has numbers and text for values")
    whole = not continuous and all(isinstance(number, int) for number in numbers)
    return _Numbers(min(numbers), max(numbers), np.int64 if whole else np.float64)


def _is_plain(value: Value) -> bool:
    return not isinstance(value, Mark)


def _in_order(values: Iterable[Value]) -> tuple[Value, ...]:
    """Return numbers in order, then texts in order."""
    return tuple(sorted(values, key=lambda value: (isinstance(value, str), value)))


def _written(values: Mapping[str, Value]) -> str:
    return ", ".join(f"{name}={show(value)}" for name, value in values.items())
