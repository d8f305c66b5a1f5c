"""Sampling: steps and episodes drawn from a network, while a policy makes the decisions.

Chance is drawn from the root down: all children of a product, and one child of a sum by its
weight. At a max node the draw waits for a decision. Evidence needs no rule of its own: `sample`
draws from the network that is conditioned on it.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from rspmn.circuit import (
    Distribution,
    FactoredLatents,
    Latent,
    Leaf,
    Max,
    Network,
    Product,
    Sum,
    Utility,
)
from rspmn.circuit.distributions.base import draw_index
from rspmn.data.episodes import Episodes, Followed
from rspmn.errors import EvidenceError
from rspmn.infer.bellman import check_steps
from rspmn.infer.evidence import Known, known_values
from rspmn.infer.likelihood import conditioned
from rspmn.model import RSPMN, Evidence
from rspmn.schema import Schema
from rspmn.spmn import SPMN
from rspmn.values import END, UNKNOWN, Mark, Value

if TYPE_CHECKING:
    from rspmn.infer.policy import Policy


class Decide(Protocol):
    """A function that makes a decision in a sampled step."""

    def __call__(
        self, decision: str, offered: Sequence[Value], known: Known, steps_to_go: int, /
    ) -> Value:
        """Return one of the offered values, given what is known before the decision.

        UNKNOWN means that there is no decision: an episode then ends with this state.
        """
        ...


def uniformly(rng: np.random.Generator) -> Decide:
    """Return a policy that chooses each offered value with the same probability."""

    def decide(_: str, offered: Sequence[Value], __: Known, ___: int) -> Value:
        return offered[int(rng.integers(len(offered)))]

    return decide


def _unless_known(known: Known, policy: Decide) -> Decide:
    """Return a policy that keeps the decisions of the evidence."""

    def decide(decision: str, offered: Sequence[Value], before: Known, steps_to_go: int) -> Value:
        made = known.get(decision)
        return policy(decision, offered, before, steps_to_go) if made is None else made

    return decide


def sample(
    network: Network,
    rng: np.random.Generator,
    policy: Decide | None = None,
    evidence: Evidence | None = None,
    schema: Schema | None = None,
) -> dict[str, Value]:
    """Draw values of all variables of a network, utilities included.

    Utilities are normal with their mean and variance.

    Parameters
    ----------
    network
        A network with one root.
    rng
        The source of randomness.
    policy
        Makes the decisions; uniformly if not given.
    evidence
        Known values. The others are drawn given these.
    schema
        If given, `policy` is passed only what is known before each decision, else all that was
        drawn so far.

    Examples
    --------
    >>> from rspmn.circuit import Categorical, NetworkBuilder
    >>> b = NetworkBuilder()
    >>> rain = b.leaf("rain", Categorical.certain(True))
    >>> wet = b.max("umbrella", {True: b.utility("u", 1.0), False: b.utility("u", -1.0)})
    >>> network = b.build(b.product([rain, wet]))
    >>> sample(network, np.random.default_rng(0), evidence={"umbrella": True})
    {'rain': True, 'umbrella': True, 'u': 1.0}
    """
    known = known_values(evidence or {}, network)
    decide = _unless_known(known, policy or uniformly(rng))
    return _sample(conditioned(network, known), rng, decide, schema)


def _sample(
    network: Network, rng: np.random.Generator, policy: Decide, schema: Schema | None
) -> dict[str, Value]:
    draw = Draw(network, network.root, rng)
    if not draw.finish(policy, 1, schema):
        raise EvidenceError(f"cannot sample: no decision is known in the state {draw.values}")
    return {**draw.values, **draw.utilities}


def sample_rows(
    model: SPMN,
    rows: int,
    rng: np.random.Generator,
    policy: "Policy | Decide | Literal['practice'] | None" = None,
    evidence: Evidence | None = None,
) -> dict[str, list[Value]]:
    """Draw rows of a single-shot model as columns, all at once unless `policy` is a function."""
    from rspmn.infer.compiled.simulate import simulate_rows
    from rspmn.infer.policy import Policy

    if rows < 1:
        raise EvidenceError(f"expected 1 or more rows to draw, found {rows}")
    known = known_values(evidence or {}, model.network)
    given = conditioned(model.network, known)
    if policy is None or isinstance(policy, Policy | str):
        return simulate_rows(given, model.schema, rows, rng, policy, known.keys())
    decide = _unless_known(known, policy)
    drawn = [_sample(given, rng, decide, model.schema) for _ in range(rows)]
    return {name: [row[name] for row in drawn] for name in model.schema.variables}


def draw_episodes(
    model: RSPMN,
    episodes: int,
    horizon: int,
    rng: np.random.Generator,
    policy: "Policy | Decide | Literal['practice'] | None" = None,
) -> Episodes:
    """Draw episodes from the start, all at once unless `policy` is a function."""
    from rspmn.infer.compiled.simulate import simulate_episodes
    from rspmn.infer.policy import Policy

    if isinstance(policy, Policy):
        model = policy.model  # the simulator must know what the policy may decide
    _check_size(model, episodes, horizon)
    if policy is None or isinstance(policy, Policy | str):
        return simulate_episodes(model, episodes, horizon, rng, policy)
    return sample_episodes(model, episodes, horizon, rng, policy)


def _check_size(model: RSPMN, episodes: int, horizon: int) -> None:
    check_steps(horizon, least=1)
    if episodes < 1:
        raise EvidenceError(f"expected 1 or more episodes to draw, found {episodes}")
    if model.end is not None and model.starts[model.end] > 0:
        raise EvidenceError("cannot sample: the model's top network starts an episode in its END")


def sample_episodes(
    model: RSPMN, episodes: int, horizon: int, rng: np.random.Generator, policy: Decide
) -> Episodes:
    """Draw episodes from the start one by one, each until END or for `horizon` steps."""
    _check_size(model, episodes, horizon)
    drawn = [_sample_episode(model, horizon, rng, policy) for _ in range(episodes)]
    steps, endings = zip(*drawn, strict=True)
    return Episodes.from_steps(steps, model.schema, endings)


def _sample_episode(
    model: RSPMN, horizon: int, rng: np.random.Generator, policy: Decide
) -> tuple[list[dict[str, Value]], Followed]:
    """Draw one episode; in a state without known decisions it ends with that state."""
    interface = Draw(model.top, model.top.root, rng).interface
    steps: list[dict[str, Value]] = []
    while len(steps) < horizon and interface not in (model.end, model.unknown):
        draw = Draw(model.template, model.template.roots[interface], rng)
        if not draw.finish(policy, horizon - len(steps), model.schema):
            names = model.schema.information_sets[0]
            return [*steps, {name: draw.values[name] for name in names}], Followed.STATE
        drawn: dict[str, Value] = {**draw.values, **draw.utilities}
        steps.append({n: v for n, v in drawn.items() if not isinstance(v, Mark)})
        interface = draw.interface
    return steps, Followed.END if interface == model.end else Followed.UNKNOWN


class Draw:
    """A draw in progress: the values drawn so far, and the max nodes that wait for a decision.

    Only nodes that are drawn are visited, so a step takes no longer in a larger template.
    """

    def __init__(self, network: Network, root: int, rng: np.random.Generator) -> None:
        self.nodes, self.rng = network.nodes, rng
        self.values: dict[str, Value] = {}
        self.utilities: dict[str, float] = {}
        self.interface = 0  # the interface node of the next step
        self.waiting: list[int] = []  # max nodes; at most one if the network has a schema
        self._descend(root)

    @property
    def decision(self) -> Max:
        """The max node that is decided next."""
        node = self.nodes[self.waiting[0]]
        assert isinstance(node, Max), "a draw waits only at max nodes"
        return node

    def decide(self, value: Value) -> None:
        """Make the next decision, and draw what follows until another one waits."""
        node = self.decision
        if value not in node.values:
            raise EvidenceError(
                f"{node.decision!r}: expected one of the available values {list(node.values)}, "
                f"found {value!r}"
            )
        self.waiting.pop(0)
        self.values[node.decision] = value
        self._descend(node.children[node.values.index(value)])

    def finish(self, policy: Decide, steps_to_go: int, schema: Schema | None) -> bool:
        """Make all decisions; return False, without doing so, where none is known."""
        while self.waiting:
            node = self.decision
            if node.values == (UNKNOWN,):
                return False
            if node.values == (END,):
                self.decide(END)
            else:
                known = self._known_before(node.decision, schema)
                value = policy(node.decision, node.values, known, steps_to_go)
                if value is UNKNOWN:
                    return False
                self.decide(value)
        return True

    def _known_before(self, decision: str, schema: Schema | None) -> Known:
        names = self.values if schema is None else schema.known_before(decision)
        drawn = {name: self.values[name] for name in names if name in self.values}
        return {name: value for name, value in drawn.items() if value is not UNKNOWN}

    def _descend(self, start: int) -> None:
        left = [start]
        while left:
            index = left.pop()
            match node := self.nodes[index]:
                case Leaf():
                    self.values[node.variable] = self._value(node.distribution)
                case Utility():
                    noise = math.sqrt(node.variance) * self.rng.standard_normal()
                    self.utilities[node.variable] = node.mean + noise
                case Latent():
                    self.interface = node.interface
                case FactoredLatents():
                    self.interface = draw_index(node.latent_weights(), self.rng)
                case Max():
                    self.waiting.append(index)
                case Product():
                    left.extend(node.children)
                case Sum():
                    left.append(self._child(node))

    # What is certain takes no random number: that is most of a learned template.

    def _value(self, distribution: Distribution) -> Value:
        values = distribution.support()
        return values[0] if len(values) == 1 else distribution.sample(self.rng)

    def _child(self, node: Sum) -> int:
        if len(node.children) == 1:
            return node.children[0]
        return node.children[draw_index(node.weights, self.rng)]
