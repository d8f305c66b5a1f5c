"""A model as a Gymnasium environment: its template is the world, drawn step by step.

What reinforcement learning says of a model can so be compared with what the model says itself.
"""

import itertools
from collections.abc import Mapping, Sequence
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
from rspmn.envs.coded_env import CategoryCode, CodedEnv, Coding, NumberCode, in_order, written
from rspmn.infer.sample import Draw
from rspmn.model import RSPMN
from rspmn.schema import Kind
from rspmn.values import Mark, Value, show

#: The index of each decision's value, in the order of the schema.
Codes = tuple[int, ...]


class ModelEnv(CodedEnv):
    """A Gymnasium environment that is drawn from a model.

    An episode starts as the top network has it. Each step makes all decisions and earns a utility
    drawn around its mean with its variance. It terminates at END. It is truncated after `horizon`
    steps, and wherever the model does not know what follows: there `info["unknown"]` is True. That
    is so at a successor that was not logged, in a state in which no decision is known, and after a
    decision that is not offered in the state, which earns 0. Where no state follows, the last
    observation is repeated.

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
        The number of steps after which an episode is truncated; if not given, there is no limit.
    render_mode
        None, or "ansi": `render` returns the last step as text.

    Examples
    --------
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

    def __init__(
        self, model: RSPMN, horizon: int | None = None, render_mode: str | None = None
    ) -> None:
        self.model, self.horizon = model, horizon
        self._check_order()
        if horizon is not None and (not isinstance(horizon, int | np.integer) or horizon < 1):
            raise self.refusal(f"expected a horizon of 1 or more, found {horizon!r}")
        self._check_starts()
        nodes = _nodes_of_states(model)
        values = self._decision_values(nodes)
        self._offered = _offered(model.template, values)
        super().__init__(
            {name: self._coding(name, nodes) for name in model.schema.information_sets[0]},
            [((name,), [(value,) for value in found]) for name, found in values.items()],
            as_dict=True,
            render_mode=render_mode,
        )
        self._under_way: Draw | None = None  # only while an episode is
        self._state: dict[str, Value] = {}
        self._steps = 0

    def _check_order(self) -> None:
        schema = self.model.schema
        if not schema.decisions:
            raise self.refusal("the model has no decision")
        for place, between in enumerate(schema.information_sets[1:-1]):
            if between:
                before, after = schema.decisions[place : place + 2]
                raise self.refusal(
                    f"{between[0]!r} is observed between the decisions {before!r} and {after!r}, "
                    "but an action makes all decisions of a step at once: this is not supported; "
                    "use RSPMN.sample"
                )

    def _check_starts(self) -> None:
        top = self.model.top
        nodes = walk_down(top, {top.root: None}, lambda _, node, __: _children(node))
        starts = {n.interface for i in nodes if isinstance(n := top.nodes[i], Latent)}
        for mark, interface in (("END", self.model.end), ("UNKNOWN", self.model.unknown)):
            if interface in starts:
                raise self.refusal(f"the top network may start an episode in {mark}")

    def _decision_values(self, nodes: Sequence[Node]) -> dict[str, tuple[Value, ...]]:
        """Return the values of each decision, in order."""
        found: dict[str, set[Value]] = {name: set() for name in self.model.schema.decisions}
        for node in nodes:
            if isinstance(node, Max):
                found[node.decision] |= {v for v in node.values if not isinstance(v, Mark)}
        for name, values in found.items():
            if not values:
                raise self.refusal(f"the model knows no value of the decision {name!r}")
        return {name: in_order(values) for name, values in found.items()}

    def _coding(self, name: str, nodes: Sequence[Node]) -> Coding:
        """Return how a variable is observed, by its kind and all its leaves."""
        leaves = [n.distribution for n in nodes if isinstance(n, Leaf) and n.variable == name]
        ends = list(dict.fromkeys(value for leaf in leaves for value in leaf.support()))
        if any(isinstance(value, Mark) for value in ends):
            raise self.refusal(
                f"{name!r} may be END or UNKNOWN in an interface node that is a state"
            )
        continuous = self.model.schema.kinds.get(name) is Kind.CONTINUOUS
        categories = all(leaf.atoms() is not None for leaf in leaves) and not continuous
        if categories or len(ends) == 1:
            return CategoryCode(in_order(ends))
        numbers = [value for value in ends if isinstance(value, int | float)]
        if len(numbers) < len(ends):
            raise self.refusal(f"{name!r} has both numbers and text as values")
        whole = not continuous and all(isinstance(number, int) for number in numbers)
        return NumberCode(min(numbers), max(numbers), np.int64 if whole else np.float64)

    # ---- episodes ------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; the same seed and actions draw the same one. There are no options."""
        super().reset(seed=seed, options=options)
        top = Draw(self.model.top, self.model.top.root, self.np_random)
        self._steps = 0
        self._enter(top.interface)
        self._shown = written(self._state)
        offered = self._offered_here()
        return self.observation(self._state), self._info(offered, unknown=not offered)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Make the decisions of one step."""
        step = self._under_way
        if step is None:
            raise self.reset_needed()
        made, offered = self.decisions(action), self._offered_here()
        self._steps += 1
        self._under_way = None
        for value in made.values():
            if value not in step.decision.values:
                self._shown = f"{written(made)} is not available in {written(self._state)}"
                return (
                    self.observation(self._state),
                    0.0,
                    False,
                    True,
                    self._info(offered, unknown=True),
                )
            step.decide(value)
        utility = step.utilities.get(self.model.schema.utility, 0.0)
        terminated = step.interface == self.model.end
        follows = "END" if terminated else "UNKNOWN"
        if not terminated and step.interface != self.model.unknown:
            self._enter(step.interface)
            follows = written(self._state)
        offered = self._offered_here()
        unknown = not terminated and not offered
        truncated = unknown or (not terminated and self._steps == self.horizon)
        if truncated:
            self._under_way = None
        self._shown = f"{written(made)} earned {show(utility)}, then {follows}"
        info = self._info(offered, unknown)
        after = self.model.schema.information_sets[-1]
        if after:
            info["seen"] = {name: step.values[name] for name in after}
        return self.observation(self._state), utility, terminated, truncated, info

    def render(self) -> Any:
        """Return the last step as text, in mode "ansi"."""
        return f"step {self._steps}: {self._shown}\n" if self.render_mode == "ansi" else None

    def _enter(self, interface: int) -> None:
        """Draw the state of an interface node, as far as its first decision."""
        template = self.model.template
        step = self._under_way = Draw(template, template.roots[interface], self.np_random)
        self._state = {name: step.values[name] for name in self._observed}

    def _offered_here(self) -> list[Codes]:
        step = self._under_way
        return [] if step is None else sorted(self._offered[step.waiting[0]])

    def _info(self, offered: Sequence[Codes], unknown: bool) -> dict[str, Any]:
        info: dict[str, Any] = {"offered": list(offered), "unknown": unknown}
        if len(self._parts) == 1:
            info["offered"] = [code for (code,) in offered]
            info["action_mask"] = np.zeros(len(self._parts[0][1]), dtype=np.int8)
            info["action_mask"][info["offered"]] = 1
        return info


# ---- what a model offers -------------------------------------------------------------


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
