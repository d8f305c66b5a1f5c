"""The recurrent sum-product-max network: schema, top network, template (Sec. 3)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rspmn.circuit import (
    Categorical,
    Latent,
    Leaf,
    Max,
    Network,
    NetworkBuilder,
    Node,
    Sum,
    Utility,
    fold_up,
    soundness_violations,
    top_violations,
)
from rspmn.circuit.rewrite import at_step, graft, with_branches
from rspmn.circuit.scope import NEXT_STEPS
from rspmn.data.episodes import Episodes
from rspmn.errors import CircuitError
from rspmn.schema import Schema
from rspmn.schema_checks import check_variables, refuse, schema_order_violations
from rspmn.types import Array
from rspmn.values import END, UNKNOWN, Mark, Value

if TYPE_CHECKING:
    from rspmn.infer.actions import ActionValue, ExpectedUtility
    from rspmn.infer.compiled.bellman import Bellman
    from rspmn.infer.policy import Policy
    from rspmn.infer.sample import Decide


#: What is known of a step: values by variable; None, NaN or left out means not known.
Evidence = Mapping[str, object]


@dataclass(frozen=True)
class Untried:
    """Decisions that were never tried in some interface nodes, and what is hoped to follow them.

    They stand beside a template; `RSPMN.with_untried` puts them into it.
    """

    network: Network  # a root for each of `at`: max nodes over the decisions, latents below
    at: tuple[int, ...]  # interface nodes

    @property
    def branches(self) -> int:
        """How many of them there are in all: each has a utility of its own."""
        ways = fold_up(
            self.network,
            lambda node, below: 1 if isinstance(node, Utility) else sum(below),
        )
        return sum(ways[root] for root in self.network.roots)

    def __post_init__(self) -> None:
        if len(set(self.at)) != len(self.at) or len(self.at) != len(self.network.roots):
            raise CircuitError(
                f"Untried: {len(self.network.roots)} roots for the interface nodes {self.at}"
            )
        for root in self.network.roots:
            if not isinstance(self.network.nodes[root], Max):
                kind = type(self.network.nodes[root]).__name__
                raise CircuitError(f"Untried: expected max nodes as roots, found a {kind}")


@dataclass(frozen=True)
class RSPMN:
    """A template that recurs step after step, capped by a top network.

    Root i of the template is interface node i; `Latent(i)` in it means interface node i of
    the next step. The top network's leaves are latents too: its weights are the start
    distribution. A model that is not valid cannot be made.

    Its queries are documented where they are defined, in `rspmn.infer`.
    """

    schema: Schema
    top: Network
    template: Network
    #: How often the log visited each interface node; () when unknown. [num_interfaces]
    visits: tuple[float, ...] = ()
    #: Decisions that were never tried; no query looks at them unless asked to.
    untried: Untried | None = None

    def __post_init__(self) -> None:
        interfaces = len(self.template.roots)
        found = [f"template: {v}" for v in soundness_violations(self.template)]
        found += [f"top: {v}" for v in top_violations(self.top, interfaces)]
        found += [f"template: {v}" for v in schema_order_violations(self.template, self.schema)]
        refuse("RSPMN", found)
        check_variables("RSPMN: template", self.template, self.schema, frozenset([NEXT_STEPS]))
        object.__setattr__(self, "visits", tuple(map(float, self.visits)))
        if self.visits and len(self.visits) != interfaces:
            raise CircuitError(
                f"RSPMN: {len(self.visits)} visits, but the template has {interfaces} roots"
            )
        if not all(0 <= count < math.inf for count in self.visits):
            raise CircuitError(f"RSPMN: expected visits of at least 0, found {self.visits}")
        if self.untried is not None:
            self._check_untried(self.untried)
        if not any(self._visits_of_states):
            raise CircuitError("RSPMN: expected an interface node that is a state and was visited")

    def _check_untried(self, untried: Untried) -> None:
        latents = [n.interface for n in untried.network.nodes if isinstance(n, Latent)]
        beyond = [i for i in (*untried.at, *latents) if not 0 <= i < self.num_interfaces]
        if beyond:
            raise CircuitError(
                f"RSPMN: untried decisions name interface node {beyond[0]}, but the template has "
                f"{self.num_interfaces} roots"
            )
        names = {n.decision for n in untried.network.nodes if isinstance(n, Max)}
        if not names <= set(self.schema.decisions):
            raise CircuitError(f"RSPMN: untried decisions {sorted(names)} are not the schema's")

    def __repr__(self) -> str:
        return (
            f"RSPMN({self.num_interfaces} interface nodes, {len(self.template)} nodes in the "
            f"template, {len(self.top)} in the top network)"
        )

    @property
    def num_interfaces(self) -> int:
        """Return |Ir|, the number of root interface nodes."""
        return len(self.template.roots)

    def unfold(self, steps: int) -> Network:
        """Return the explicit SPMN over so many steps, variable x of step t named `x@t`.

        Sec. 3.2: the template is repeated, root interface nodes of step t+1 take the place of
        the latents of step t, the last step's latents are removed, the top network caps it.
        By Theorem 1 the result is valid. No query needs it; it is a witness for tests and
        pictures.
        """
        if steps < 1:
            raise CircuitError(f"unfold: expected at least 1 step, found {steps}")
        builder = NetworkBuilder()
        below: list[int | None] = [None] * self.num_interfaces
        for step in range(steps - 1, -1, -1):
            placed = graft(
                builder,
                self.template,
                rename=lambda name, step=step: at_step(name, step),  # type: ignore[misc]
                latent=below.__getitem__,
            )
            below = [placed[root] for root in self.template.roots]
        top = graft(builder, self.top, rename=None, latent=below.__getitem__)[self.top.root]
        if top is None:
            raise CircuitError("unfold: the template has no variables")
        return builder.build(top)

    def with_untried(self) -> "RSPMN":
        """Return the model with decisions that were never tried, where it has hopes for them.

        Behind such a decision stand no logged steps: what it earns and where it leads is what
        it does elsewhere.
        """
        return self if self.untried is None else self._with_untried

    @cached_property
    def _with_untried(self) -> "RSPMN":
        assert self.untried is not None
        builder = NetworkBuilder()
        roots = self._copy_template(builder)
        hopes = graft(builder, self.untried.network, rename=None, latent=builder.latent)
        for here, root in zip(self.untried.at, self.untried.network.roots, strict=True):
            extra = hopes[root]
            assert extra is not None, "a max node is never left out"
            roots[here] = with_branches(builder, roots[here], extra)
        return RSPMN(self.schema, self.top, builder.build(*roots), self.visits)

    @cached_property
    def bottom(self) -> Network:
        """The last step's template: its latents, and what held nothing else, are removed."""
        builder = NetworkBuilder()
        placed = graft(builder, self.template, rename=None, latent=lambda _: None)
        return builder.build(*self._roots_among(placed))

    @cached_property
    def starts(self) -> tuple[float, ...]:
        """The start distribution: what the top network gives each interface node."""

        def form(node: Node, below: list[Array]) -> Array:
            if isinstance(node, Latent):
                return np.asarray(np.eye(self.num_interfaces)[node.interface])
            weights = node.weights if isinstance(node, Sum) else (1.0,) * len(below)
            return np.asarray(np.array(weights) @ np.array(below), dtype=np.float64)

        return tuple(fold_up(self.top, form)[self.top.root].tolist())

    @cached_property
    def from_start(self) -> Network:
        """The first step of an episode: the top network on the template.

        Its latents remain; they are interface nodes of the second step.
        """
        builder = NetworkBuilder()
        roots = self._copy_template(builder)
        top = graft(builder, self.top, rename=None, latent=roots.__getitem__)[self.top.root]
        assert top is not None, "a grafted latent is never None here"
        return builder.build(top)

    @cached_property
    def from_anywhere(self) -> Network:
        """A step at any time: interface nodes weighed by how often the log visited them.

        For a state in the middle of an episode the start distribution is the wrong weight:
        most states never start one.
        """
        builder = NetworkBuilder()
        roots = self._copy_template(builder)
        visits = self._visits_of_states
        total = sum(visits)
        return builder.build(builder.sum(roots, [v / total for v in visits]))

    @property
    def _visits_of_states(self) -> list[float]:
        """How often each state was visited, all alike if not told; END and UNKNOWN are none."""
        visits = self.visits or (1.0,) * self.num_interfaces
        no_states = (self.end, self.unknown)
        return [0.0 if i in no_states else count for i, count in enumerate(visits)]

    def _copy_template(self, builder: NetworkBuilder) -> list[int]:
        return self._roots_among(graft(builder, self.template, rename=None, latent=builder.latent))

    def _roots_among(self, placed: list[int | None]) -> list[int]:
        # A root holds the schema's variables, so it is never left out with the latents.
        return [place for root in self.template.roots if (place := placed[root]) is not None]

    @cached_property
    def end(self) -> int | None:
        """The END interface node, where the model has one: there all variables are END."""
        return self._marked(END)

    @cached_property
    def unknown(self) -> int | None:
        """The interface node of successors that are unknown, where the model has one."""
        return self._marked(UNKNOWN)

    def _marked(self, mark: Mark) -> int | None:
        """Return the interface node in which all variables have one mark."""

        def holds(index: int) -> bool:
            node = self.template.nodes[index]
            match node:
                case Max():
                    return node.values == (mark,) and holds(node.children[0])
                case Leaf():
                    return node.distribution == certain
                case _:
                    return all(map(holds, node.children))

        certain = Categorical.certain(mark)
        return next((i for i, root in enumerate(self.template.roots) if holds(root)), None)

    @cached_property
    def bellman(self) -> "Bellman":
        """The template as matrices, for queries without evidence."""
        from rspmn.infer.compiled.bellman import compile_bellman

        return compile_bellman(self.template, self.unknown)

    # ---- queries: each is a door to `rspmn.infer` ----------------------------------

    def meu(
        self,
        state: Evidence | None = None,
        horizon: int | None = None,
        discount: float = 1.0,
        *,
        allow_untried: bool = False,
    ) -> "ExpectedUtility":
        """Return the maximum expected utility from the start, or from an observed state.

        `horizon` counts steps; without one, until the values converge. The state may be
        partial and may hold decisions already made in this step. The answer is a number that
        also knows whether the model ever saw such a state (`supported`) and how many logged
        steps stand behind it (`steps`).

        `allow_untried` lets decisions be chosen that were never tried in a state, valued by what
        they do elsewhere; so it does in the queries below.
        """
        from rspmn.infer.recurrent import meu

        return meu(self._asked(allow_untried), state, horizon, discount)

    def values(
        self, horizon: int | None = None, discount: float = 1.0, *, allow_untried: bool = False
    ) -> list[float]:
        """Return the maximum expected utility of every interface node."""
        from rspmn.infer.recurrent import values

        return values(self._asked(allow_untried), horizon, discount)

    def expected_utilities(
        self,
        state: Evidence | None = None,
        horizon: int | None = None,
        discount: float = 1.0,
        *,
        allow_untried: bool = False,
    ) -> "list[ActionValue]":
        """Return what every value of the next decision is worth, with its support."""
        from rspmn.infer.recurrent import expected_utilities

        return expected_utilities(self, state, horizon, discount, allow_untried)

    def best_decisions(
        self,
        state: Evidence | None = None,
        horizon: int | None = None,
        discount: float = 1.0,
        *,
        allow_untried: bool = False,
    ) -> "list[ActionValue]":
        """Return every best value of the next decision; the first is as good as any."""
        from rspmn.infer.recurrent import best_decisions

        return best_decisions(self, state, horizon, discount, allow_untried)

    def _asked(self, allow_untried: bool) -> "RSPMN":
        return self.with_untried() if allow_untried else self

    def policy(
        self,
        horizon: int | None = None,
        discount: float = 1.0,
        otherwise: "Value | Mapping[str, Value] | None" = None,
        *,
        allow_untried: bool = False,
    ) -> "Policy":
        """Return the best decisions over so many steps, or in the limit of many.

        `otherwise` is what to do in states that the model never saw; without it, asking for a
        decision there is an error.
        """
        from rspmn.infer.policy import Policy

        return Policy(self, horizon, discount, otherwise, allow_untried)

    def log_likelihood(
        self, episodes: Episodes, smoothed: bool | float = True
    ) -> Array:  # [num_episodes]
        """Return the log-likelihood of each episode, given its decisions.

        A learned model is smoothed: what it never saw is improbable, not impossible. `smoothed` is
        the weight of more general estimates in steps; True is one, and False or 0 is none.
        """
        from rspmn.infer.compiled.smoothing import episode_log_likelihoods

        return episode_log_likelihoods(self, episodes, smoothed)

    def mpe(self, steps: Sequence[Evidence]) -> list[dict[str, Value]] | None:
        """Return an episode with the likeliest values for what it lacks."""
        from rspmn.infer.mpe import episode_mpe

        return episode_mpe(self, steps)

    def sample(
        self,
        episodes: int,
        horizon: int,
        rng: np.random.Generator | int,
        policy: "Policy | Decide | None" = None,
    ) -> Episodes:
        """Draw episodes from the model: it is a simulator of what it was learned from.

        Parameters
        ----------
        episodes, horizon
            How many episodes, and how many steps each has at most.
        rng
            A generator, or a seed for one.
        policy
            Who decides: a `Policy`, or a function as `rspmn.infer.Decide` describes it. If not
            given, decisions are made uniformly.
        """
        from rspmn.infer.sample import draw_episodes

        return draw_episodes(self, episodes, horizon, np.random.default_rng(rng), policy)

    # ---- files -------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the model as JSON, gzipped when the name ends in .gz; whole or not at all."""
        from rspmn.model_file import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> "RSPMN":
        """Read a model and check that it is valid."""
        from rspmn.model_file import load_rspmn

        return load_rspmn(path)


def uniform_top(interfaces: int) -> Network:
    """Return the top network of Sec. 4, Step 2: one sum over all interface nodes, equal weights."""
    return weighted_top([1 / interfaces] * interfaces)


def weighted_top(weights: Sequence[float]) -> Network:
    """Return a top network that starts in interface node i with probability weights[i]."""
    builder = NetworkBuilder()
    chosen = [(i, weight) for i, weight in enumerate(weights) if weight != 0]
    latents = [builder.latent(i) for i, _ in chosen]
    return builder.build(builder.sum(latents, [weight for _, weight in chosen]))


def end_root(builder: NetworkBuilder, schema: Schema, index: int) -> int:
    """Add the END interface node, to stand at root `index`: absorbing, worth 0 for ever.

    All its variables, decisions too, are END. So it has the scope that Def. 8 asks of every
    root, and evidence finds it by the same rules as any other node: a step that has a value
    gives it likelihood 0, a step that is END gives it likelihood 1.
    """
    certain = Categorical.certain(END)
    over = [builder.leaf(name, certain) for name in schema.information_sets[0]]
    return marked_root(builder, schema, over, END, index)


def unknown_root(builder: NetworkBuilder, schema: Schema, index: int) -> int:
    """Add the interface node, to stand at root `index`, of successors that were not logged.

    All its variables are UNKNOWN, so it is worth -∞ if a step is to be made from it: a branch
    that leads there counts in the last step of a horizon only.
    """
    certain = Categorical.certain(UNKNOWN)
    over = [builder.leaf(name, certain) for name in schema.information_sets[0]]
    return marked_root(builder, schema, over, UNKNOWN, index)


def marked_root(
    builder: NetworkBuilder, schema: Schema, state: Sequence[int], mark: Mark, index: int
) -> int:
    """Add an interface node of some state, all that follows it marked, leading to node `index`."""
    below = [builder.utility(schema.utility, 0.0), builder.latent(index)]
    for place in range(len(schema.decisions), 0, -1):
        group = schema.information_sets[place]
        over = [builder.leaf(name, Categorical.certain(mark)) for name in group]
        below = [builder.product([*over, *below])]
        below = [builder.max(schema.decisions[place - 1], {mark: below[0]})]
    return builder.product([*state, *below])
