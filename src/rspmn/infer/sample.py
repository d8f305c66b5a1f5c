"""Sampling: drawing steps and episodes from a network, decisions made by whoever is asked.

Chance is drawn top down, a sum's child by its weight times its likelihood given the evidence.
At a max node the walk waits; when nothing else is left to draw the first decision in order is
made, by the evidence or by `decide`, and the walk goes on below it.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

from rspmn.circuit import Latent, Leaf, Max, Network, Node, Product, Sum, Utility, walk_down
from rspmn.data.episodes import Episodes, Followed
from rspmn.errors import EvidenceError
from rspmn.infer.actions import ActionValue, best_among, expected_utilities
from rspmn.infer.bellman import Future, update
from rspmn.infer.evidence import Known, known_values
from rspmn.infer.likelihood import log_likelihoods
from rspmn.infer.meu import NOTHING_FOLLOWS
from rspmn.infer.recurrent import check_steps
from rspmn.model import RSPMN, Evidence
from rspmn.schema import Schema
from rspmn.values import END, UNKNOWN, Mark, Value

if TYPE_CHECKING:
    from rspmn.infer.policy import Policy


class Decide(Protocol):
    """Makes a decision in a sampled step."""

    def __call__(
        self, decision: str, offered: Sequence[Value], known: Known, steps_to_go: int, /
    ) -> Value:
        """Return one of the values offered, given what is known before the decision."""
        ...


def uniformly(rng: np.random.Generator) -> Decide:
    """Choose among the values offered, all alike."""

    def decide(_: str, offered: Sequence[Value], __: Known, ___: int) -> Value:
        return offered[int(rng.integers(len(offered)))]

    return decide


def best_first(model: RSPMN, discount: float = 1.0) -> Decide:
    """Choose what the model finds best of what is offered, for the steps to go."""
    futures = [Future([NOTHING_FOLLOWS] * model.num_interfaces)]  # by steps to go

    @lru_cache(maxsize=100_000)
    def answers(
        decision: str, known: tuple[tuple[str, Value], ...], steps_to_go: int
    ) -> list[ActionValue]:
        while len(futures) < steps_to_go:
            futures.append(update(model, futures[-1], discount))
        future = futures[steps_to_go - 1].discounted(discount)
        return expected_utilities(model.from_anywhere, dict(known), decision, future)

    def decide(decision: str, offered: Sequence[Value], known: Known, steps_to_go: int) -> Value:
        found = answers(decision, tuple(known.items()), steps_to_go)
        best = best_among([answer for answer in found if answer.value in offered])
        if not best:
            raise EvidenceError(f"{decision!r}: the model was never in the state {known}")
        return best[0].value

    return decide


def sample(
    network: Network,
    rng: np.random.Generator,
    decide: Decide,
    evidence: Evidence | None = None,
    schema: Schema | None = None,
) -> dict[str, Value]:
    """Draw values for all variables of a network, utilities too, given evidence.

    A utility is drawn as normal around its mean with its variance. With a schema, a decision
    is told only what is known before it.
    """
    known = known_values(evidence or {}, network)
    likelihoods = log_likelihoods(network, known)
    if likelihoods[network.root] == -math.inf:
        raise EvidenceError(f"cannot sample: the evidence {known} is impossible under the network")
    draw = _Draw(network, known, likelihoods, rng, schema)
    draw.run(network.root, decide, 1)
    return draw.drawn


def draw_episodes(
    model: RSPMN,
    episodes: int,
    horizon: int,
    rng: np.random.Generator,
    policy: "Policy | Decide | None" = None,
) -> Episodes:
    """Draw episodes from the start, all at once unless a function is to decide each step."""
    from rspmn.infer.compiled.simulate import Simulator
    from rspmn.infer.policy import Policy

    if isinstance(policy, Policy) and policy.allow_untried:
        model = model.with_untried()  # what it may decide, the simulator must know
    _check_size(model, episodes, horizon)
    if policy is None or isinstance(policy, Policy):
        return Simulator(model).run(episodes, horizon, rng, policy)
    return sample_episodes(model, episodes, horizon, policy, rng)


def _check_size(model: RSPMN, episodes: int, horizon: int) -> None:
    check_steps(horizon, least=1)
    if episodes < 1:
        raise EvidenceError(f"expected 1 or more episodes to draw, found {episodes}")
    if model.end is not None and model.starts[model.end] > 0:
        raise EvidenceError("cannot sample: the model's top network starts an episode in its END")


def sample_episodes(
    model: RSPMN, episodes: int, horizon: int, decide: Decide, rng: np.random.Generator
) -> Episodes:
    """Draw episodes from the start: until END, or for `horizon` steps."""
    _check_size(model, episodes, horizon)
    rows: list[list[dict[str, Value]]] = []
    endings: list[Followed] = []
    for _ in range(episodes):
        steps, ending = _sample_episode(model, horizon, decide, rng)
        rows.append(steps)
        endings.append(ending)
    return Episodes.from_steps(rows, model.schema, endings)


def _sample_episode(
    model: RSPMN, horizon: int, decide: Decide, rng: np.random.Generator
) -> tuple[list[dict[str, Value]], Followed]:
    """Draw one episode; where no decision is known, its last step is a state only."""
    start = _Draw(model.top, {}, log_likelihoods(model.top, {}), rng)
    interface = start.run(model.top.root, decide, horizon)
    likelihoods = log_likelihoods(model.template, {})
    steps: list[dict[str, Value]] = []
    while len(steps) < horizon and interface not in (model.end, model.unknown):
        draw = _Draw(model.template, {}, likelihoods, rng, model.schema)
        interface = draw.run(model.template.roots[interface], decide, horizon - len(steps))
        if draw.stuck:
            names = model.schema.information_sets[0]
            return [*steps, {name: draw.drawn[name] for name in names}], Followed.STATE
        steps.append({n: v for n, v in draw.drawn.items() if not isinstance(v, Mark)})
    return steps, Followed.END if interface == model.end else Followed.UNKNOWN


class _Draw:
    """One sample under way: what has been drawn, and where the walk waits for a decision."""

    def __init__(
        self,
        network: Network,
        known: Known,
        likelihoods: Sequence[float],
        rng: np.random.Generator,
        schema: Schema | None = None,
    ) -> None:
        self.network = network
        self.schema = schema
        self.known = known
        self.likelihoods = likelihoods
        self.rng = rng
        self.drawn: dict[str, Value] = {}
        self.utilities: set[str] = set()
        self.waiting: dict[int, Max] = {}
        self.interface = 0
        self.stuck = False  # whether it came where no decision was ever tried

    def run(self, root: int, decide: Decide, steps_to_go: int) -> int:
        """Draw everything below a root; return the interface node that follows."""
        starts = [root]
        while starts:
            self._walk(starts)
            starts = self._decide_next(decide, steps_to_go)
        return self.interface

    def _walk(self, starts: Iterable[int]) -> None:
        walk_down(self.network, dict.fromkeys(starts), self._send)

    def _send(self, index: int, node: Node, _: list[None]) -> list[tuple[int, None]]:
        match node:
            case Leaf():
                value = self.known.get(node.variable)
                self.drawn[node.variable] = (
                    node.distribution.sample(self.rng) if value is None else value
                )
            case Utility():
                spread = math.sqrt(node.variance) * self.rng.standard_normal()
                self.drawn[node.variable] = node.mean + spread
                self.utilities.add(node.variable)
            case Latent():
                self.interface = node.interface
            case Max():
                self.waiting[index] = node
            case Product():
                return [(child, None) for child in node.children]
            case Sum():
                return [(self._choose(node), None)]
        return []

    def _choose(self, node: Sum) -> int:
        logs = np.array([self.likelihoods[child] for child in node.children])
        weights = np.array(node.weights)
        shares = weights * np.exp(np.minimum(0.0, logs - logs[weights > 0].max()))
        return node.children[int(self.rng.choice(len(shares), p=shares / shares.sum()))]

    def _decide_next(self, decide: Decide, steps_to_go: int) -> list[int]:
        if not self.waiting:
            return []
        node = self.waiting.pop(min(self.waiting))
        if node.values == (UNKNOWN,):
            self.stuck = True
            return []
        value = self.known.get(node.decision)
        if value is None:
            value = self._ask(node, decide, steps_to_go)
        self.drawn[node.decision] = value
        return [node.children[node.values.index(value)]]

    def _ask(self, node: Max, decide: Decide, steps_to_go: int) -> Value:
        below = zip(node.values, node.children, strict=True)
        offered = [value for value, child in below if self.likelihoods[child] > -math.inf]
        if offered == [END]:
            return END
        value = decide(node.decision, offered, self._known_before(node.decision), steps_to_go)
        if value not in offered:
            raise EvidenceError(
                f"{node.decision!r}: {value!r} was chosen, but only {offered} are offered here"
            )
        return value

    def _known_before(self, decision: str) -> Known:
        """Return what is known before a decision; without a schema, all drawn but utilities."""
        if self.schema is not None:
            before = self.schema.known_before(decision)
            known = {name: self.drawn[name] for name in before if name in self.drawn}
            return {name: value for name, value in known.items() if value is not UNKNOWN}
        return {name: value for name, value in self.drawn.items() if name not in self.utilities}
