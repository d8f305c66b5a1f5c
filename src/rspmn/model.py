"""The recurrent sum-product-max network: schema, top network, template (Sec. 3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import numpy as np

from rspmn.availability import NeverTaken
from rspmn.behaviour import UNKNOWN_BEHAVIOUR, Behaviour
from rspmn.circuit import (
    Max,
    Network,
    Product,
    Sum,
    Utility,
    soundness_violations,
    top_violations,
    validity_violations,
)
from rspmn.circuit.more_branches import with_branches
from rspmn.circuit.node_arrays import KINDS
from rspmn.circuit.rewrite import (
    any_step,
    first_step,
    last_step,
    start_distribution,
    unfold,
)
from rspmn.circuit.validity import latent_violations, refuse, schema_violations
from rspmn.data.episodes import Episodes
from rspmn.display import facts_html
from rspmn.end_nodes import marked_interface, visits_of_states
from rspmn.errors import CircuitError, EvidenceError, did_you_mean
from rspmn.schema import Schema
from rspmn.successor_counts import SoftCounts, SuccessorCounts
from rspmn.types import Array
from rspmn.values import END, MOST_STEPS, UNKNOWN, Value

if TYPE_CHECKING:
    from rspmn.infer.actions import ActionValue
    from rspmn.infer.compiled.bellman import Bellman
    from rspmn.infer.compiled.offers import Offers
    from rspmn.infer.compiled.state_index import StateIndex
    from rspmn.infer.constraints import Rules
    from rspmn.infer.criterion import Criterion
    from rspmn.infer.meu import ExpectedUtility
    from rspmn.infer.policy import Policy
    from rspmn.infer.sample import Decide
    from rspmn.trust import HonestValue, Posterior
    from rspmn.trust.drawn_worlds import Source
    from rspmn.trust.safe_choice import SafeChoice
    from rspmn.trust.soft_box_draws import SoftPosterior


class PolicyOptions(TypedDict, total=False):
    """What `RSPMN.policy` takes besides horizon and discount, as other questions take it."""

    offer: "Offer"
    criterion: "Criterion | None"
    forbid: "Rules"
    only: "Rules"
    min_support: float
    safe: bool


#: Which decisions are offered in a state: those that were "tried" there; those and what the logger
#: left out by chance, as "expected"; or "all", also what the logger avoided there.
Offer = Literal["tried", "expected", "all"]
OFFERS = "tried", "expected", "all"

#: Known values of a step, by variable; None, NaN and variables left out are unknown.
Evidence = Mapping[str, object]


@dataclass(frozen=True)
class Untried:
    """Decisions that were never tried in some interface nodes, with extrapolated outcomes.

    They are kept apart from the template; `RSPMN.offering` adds them to it.
    """

    network: Network  # a root for each of `at`: max nodes over the decisions, latents below
    at: tuple[int, ...]  # interface nodes

    @property
    def branches(self) -> int:
        """The number of combinations of decisions, each of which ends in a utility."""
        arrays = self.network.arrays
        utilities = (arrays.kind == KINDS[Utility]).astype(np.int64)  # [nodes], at or below each
        arrays.fold_up(utilities, dict.fromkeys((Sum, Product, Max), np.add))
        return int(utilities[list(self.network.roots)].sum())

    def __post_init__(self) -> None:
        if len(set(self.at)) != len(self.at) or len(self.at) != len(self.network.roots):
            raise CircuitError(
                f"Untried: {len(self.network.roots)} roots for the interface nodes {self.at}"
            )
        roots = np.array(self.network.roots)
        for root in roots[self.network.arrays.kind[roots] != KINDS[Max]][:1].tolist():
            kind = type(self.network.nodes[root]).__name__
            raise CircuitError(f"Untried: expected max nodes as roots, found a {kind}")

    def check_fit(self, schema: Schema, interfaces: int) -> None:
        """Refuse decisions that do not fit a schema or the number of a template's roots."""
        refuse("RSPMN: untried decisions", latent_violations(self.network, interfaces))
        beyond = [i for i in self.at if not 0 <= i < interfaces]
        if beyond:
            raise CircuitError(
                f"RSPMN: untried decisions name interface node {beyond[0]}, but the template has "
                f"{interfaces} roots"
            )
        before = schema.information_sets[0]
        violations = validity_violations(self.network)
        violations += schema_violations(self.network, schema, recurrent=True, given=before)
        refuse("RSPMN: untried decisions", violations)


@dataclass(frozen=True)
class RSPMN:
    """A template that recurs in every step, below a top network.

    Root i of the template is interface node i; `Latent(i)` in it means interface node i of
    the next step. The leaves of the top network are latents too: its weights are the start
    distribution. An invalid model raises a `CircuitError`.

    The queries are defined in `rspmn.infer`; the methods call them.
    """

    schema: Schema
    top: Network
    template: Network
    #: How often the log visited each interface node; () when unknown. [num_interfaces]
    visits: tuple[float, ...] = ()
    #: Decisions that were never tried, by chance; queries leave them out with `offer="tried"`.
    untried: Untried | None = None
    #: Where the log never took a decision that the model offers there; answers say so.
    never_taken: tuple[NeverTaken, ...] = ()
    #: The logged steps behind the weights of S_L; None when unknown.
    counts: SuccessorCounts | None = None
    #: Variables of the state that nothing depends on: interface nodes do not differ by them.
    set_aside: tuple[str, ...] = ()
    #: The logged steps behind soft boxes; None where interface nodes are no soft boxes.
    soft_counts: SoftCounts | None = None
    #: Interface nodes of states in which the log has no decision: what decisions do there is
    #: extrapolated.
    beyond: tuple[int, ...] = ()
    #: Decisions that were never tried where the logger was expected to; and all that were not,
    #: where states are numbers. Queries use them only with `offer="all"`.
    avoided: Untried | None = None
    #: What the logger does; without trees if that is not known. Of a log that is larger than
    #: `LearnConfig.max_windows` it is that of the sample.
    behaviour: Behaviour = UNKNOWN_BEHAVIOUR
    #: The steps of the longest logged episodes, if all of these ended; 0 if not, or if unknown.
    last_end: int = 0

    def __post_init__(self) -> None:
        interfaces = len(self.template.roots)
        refuse("RSPMN: template", soundness_violations(self.template))
        refuse("RSPMN: top", top_violations(self.top, interfaces))
        refuse("RSPMN: template", schema_violations(self.template, self.schema, recurrent=True))
        object.__setattr__(self, "visits", tuple(map(float, self.visits)))
        if self.visits and len(self.visits) != interfaces:
            raise CircuitError(
                f"RSPMN: {len(self.visits)} visits, but the template has {interfaces} roots"
            )
        odd = [count for count in self.visits if not 0 <= count <= MOST_STEPS]
        if odd:
            raise CircuitError(f"RSPMN: expected visits from 0 to {MOST_STEPS:.3g}, found {odd[0]}")
        for part in (self.untried, self.avoided):
            if part is not None:
                part.check_fit(self.schema, interfaces)
        self.behaviour.check_fit(self.schema)
        if not 0 <= self.last_end <= MOST_STEPS:
            raise CircuitError(
                f"RSPMN: last_end: expected 0 to {MOST_STEPS:.3g} steps, found {self.last_end}"
            )
        for counts in (self.counts, self.soft_counts):
            if counts is not None:
                counts.check_fit(interfaces)
        if not all(0 <= node < interfaces for node in self.beyond):
            raise CircuitError(
                f"RSPMN: interface nodes beyond the log: expected 0 to {interfaces - 1}, found "
                f"{self.beyond}"
            )
        strange = [n for n in self.set_aside if n not in self.schema.information_sets[0]]
        if strange:
            raise CircuitError(
                f"RSPMN: {strange[0]!r} was set aside, but the variables known before the first "
                f"decision are {list(self.schema.information_sets[0])}"
            )
        if not visits_of_states(self).any():
            raise CircuitError("RSPMN: expected an interface node that is a state and was visited")

    @property
    def facts(self) -> dict[str, object]:
        """Variables and sizes, as `rspmn info` shows them."""
        return {
            "state variables": list(self.schema.state_variables),
            "decisions": list(self.schema.decisions),
            "utility": self.schema.utility,
            "ignored": list(self.set_aside),
            "interface nodes": self.num_state_interfaces,
            "END interface node": self.end,
            "top nodes": len(self.top),
            "template nodes": len(self.template),
            "template edges": self.template.num_edges,
            "logged steps": round(sum(self.visits)),
        }

    def _repr_html_(self) -> str:
        return facts_html("Recurrent sum-product-max network", self.facts)

    def __repr__(self) -> str:
        return (
            f"RSPMN({self.num_state_interfaces} interface nodes, {len(self.template)} nodes in the "
            f"template, {len(self.top)} in the top network)"
        )

    @property
    def num_interfaces(self) -> int:
        """Return |Ir|, the number of roots of the template, END and UNKNOWN among them."""
        return len(self.template.roots)

    @property
    def num_state_interfaces(self) -> int:
        """Return the number of interface nodes that are states: all but END and UNKNOWN.

        This is the count of interface nodes in messages, `rspmn info` and `RSPMNInfo.interfaces`.
        """
        return self.num_interfaces - sum(node is not None for node in (self.end, self.unknown))

    @property
    def networks(self) -> tuple[Network, ...]:
        """The networks that a model consists of: top, template, and untried decisions if any."""
        parts = [part.network for part in (self.untried, self.avoided) if part is not None]
        return (self.top, self.template, *parts)

    def unfold(self, steps: int) -> Network:
        """Return the explicit SPMN over `steps` steps, variable x of step t named `x@t`.

        By Theorem 1 it is valid. It is for tests and pictures; no query needs it. A frontier, a
        state in which no decision was logged, is unknown in it: `rspmn.infer.meu` leaves it out of
        the mean, where `RSPMN.meu` counts it as the worst interface node with as many steps to go.
        That is a rule of planning, not a node: no network over the logged decisions has this value
        and the likelihood of the log.

        Examples
        --------
        Two moves at -1, after which one of two episodes ends and the other is in a new state:

        >>> from rspmn import Episodes, Followed, Schema, learn_rspmn
        >>> from rspmn.infer.meu import meu
        >>> moves = [{"x": 0, "go": "on", "u": -1.0}, {"x": 1, "go": "on", "u": -1.0}]
        >>> schema, endings = Schema([["x"], ["go"]], ["go"], "u"), [Followed.STATE, Followed.END]
        >>> log = Episodes.from_steps([[*moves, {"x": 2}], moves], schema, endings)
        >>> model, _ = learn_rspmn(log)
        >>> model.meu(horizon=3)  # -2, and half of the time the worst of one more step, -1
        -2.5 (supported 0.5, from 2 logged steps)
        >>> meu(model.unfold(3))  # -2, in the half that is known
        -2.0 (supported 0.5)
        """
        return unfold(self.top, self.template, steps)

    def offering(self, offer: Offer = "expected") -> "RSPMN":
        """Return the model with decisions added that were never tried in an interface node.

        No logged steps support them: their utility and successors are extrapolated from what they
        did elsewhere. `offer` is "tried": none; "expected": those that the logger left out by
        chance; "all": also those that the logger avoided.
        """
        if offer not in OFFERS:
            raise EvidenceError(f"offer {offer!r}: {did_you_mean(offer, OFFERS)}")
        if offer == "tried":
            return self
        chance = self if self.untried is None else self._with_untried
        return chance if offer == "expected" or self.avoided is None else chance._with_avoided

    @cached_property
    def _with_untried(self) -> "RSPMN":
        assert self.untried is not None
        return replace(self._with(self.untried), untried=None)

    @cached_property
    def _with_avoided(self) -> "RSPMN":
        assert self.avoided is not None
        return replace(self._with(self.avoided), avoided=None)

    def _with(self, more: Untried) -> "RSPMN":
        """Return the model with more branches in its template, of which it counts no steps."""
        from rspmn.infer.compiled.outcomes import outcomes_of, refuse_outcomes

        template, place = with_branches(self.template, np.array(more.at), more.network)
        counts, soft = self.counts, self.soft_counts
        before, after = outcomes_of(self.template), outcomes_of(template).nodes
        number = np.searchsorted(after, place[before.nodes])
        if counts is not None:
            refuse_outcomes(before, counts.outcomes)
            counts = counts.renumbered(number)
        if soft is not None:
            refuse_outcomes(before, len(soft.steps))
            soft = soft.renumbered(number, len(after))
        return replace(self, template=template, counts=counts, soft_counts=soft)

    @cached_property
    def bottom(self) -> Network:
        """The template of the last step: without latents, and nodes over nothing but latents."""
        return last_step(self.template)

    @cached_property
    def starts(self) -> tuple[float, ...]:
        """The start distribution: the probability of each interface node by the top network."""
        return start_distribution(self.top, self.num_interfaces)

    @cached_property
    def from_start(self) -> Network:
        """The first step of an episode: the top network above the template.

        Its latents are the interface nodes of the second step.
        """
        return first_step(self.top, self.template)

    @cached_property
    def from_anywhere(self) -> Network:
        """A step at any time: interface nodes weighted by how often the log visited them.

        The start distribution would be wrong for a state in the middle of an episode, as most
        states never start one.
        """
        return any_step(self.template, visits_of_states(self).tolist())

    @cached_property
    def end(self) -> int | None:
        """The interface node in which all variables are END, None if the model has none."""
        return marked_interface(self.template, END)

    @cached_property
    def unknown(self) -> int | None:
        """The interface node of successors that were not logged, None if the model has none."""
        return marked_interface(self.template, UNKNOWN)

    @cached_property
    def bellman(self) -> "Bellman":
        """The template as matrices, for queries without evidence."""
        from rspmn.infer.compiled.compile_bellman import compile_bellman

        return compile_bellman(self.template, self.unknown)

    @cached_property
    def offers(self) -> "Offers":
        """Which branches of the template offer the values of its decisions."""
        from rspmn.infer.compiled.offers import Offers

        return Offers(self.template)

    @cached_property
    def state_index(self) -> "StateIndex":
        """What finds the interface nodes of states; all policies of the model share it."""
        from rspmn.infer.compiled.state_index import StateIndex

        return StateIndex.of(self)

    # ---- queries: each calls `rspmn.infer` -----------------------------------------

    def meu(
        self,
        state: object = None,
        horizon: int | None = None,
        discount: float = 1.0,
        *,
        offer: Offer = "expected",
        criterion: "Criterion | None" = None,
    ) -> "ExpectedUtility":
        """Return the maximum expected utility from the start, or from an observed state.

        Parameters
        ----------
        state
            A mapping from variables to values, a pandas Series, or a row in the schema's order;
            None is the start of an episode. It may be partial, and may contain decisions already
            made in this step. Missing variables will be observed before the decision is made.
        horizon
            The number of steps; by default, values are updated until they converge.
        discount
            The discount factor per step.
        offer
            Whether actions that were never tried in a state may be chosen; their values are
            extrapolated from other states.
        criterion
            The criterion at decisions; see `rspmn.infer.criterion`.

        Returns
        -------
        ExpectedUtility
            A float with the attributes `supported`, the probability of those futures that are
            known, and `steps`, the number of logged steps. It is the value over the known futures,
            NaN if there are none. Futures that lead to a frontier, a state in which no decision
            was logged, are not supported; there the value is the lowest of all interface nodes with
            as many steps to go (see `RSPMN.unfold` for an example).
        """
        from rspmn.infer.evidence import as_state, known_values

        if state is not None:  # what is wrong with it is said before anything is computed
            known_values(as_state(state, self.schema), self.template)
        policy = self.policy(horizon, discount, offer=offer, criterion=criterion, safe=False)
        return policy.value(state)

    def honest_value(
        self,
        horizon: int | None = None,
        discount: float = 1.0,
        state: object = None,
        *,
        draws: int = 300,
        rng: np.random.Generator | int = 0,
        level: float = 0.9,
    ) -> "HonestValue":
        """Return an estimate of the true value of the recommended policy, with a 90 % interval.

        This is `policy(horizon, discount).honest_value(state)`; see `Policy.honest_value`.

        Examples
        --------
        >>> from rspmn.envs.grid_universe import grid_universe
        >>> from rspmn.learn import learn_rspmn
        >>> model, _ = learn_rspmn(grid_universe().generate(episodes=2000, horizon=8, rng=0))
        >>> found = model.honest_value(horizon=8)
        >>> found.low <= 6 <= found.high
        True
        """
        policy = self.policy(horizon, discount)
        return policy.honest_value(state, draws=draws, rng=rng, level=level)

    @cached_property
    def posterior(self) -> "Posterior":
        """The posterior of all weights, given the counts behind them."""
        from rspmn.trust import Posterior

        return Posterior(self)

    @cached_property
    def soft_posterior(self) -> "SoftPosterior":
        """The errors of what soft boxes are worth, given the counts behind them."""
        from rspmn.trust.soft_box_draws import SoftPosterior

        return SoftPosterior(self)

    @property
    def is_counted(self) -> bool:
        """Whether the model has counts, from which its weights can be drawn."""
        return self.counts is not None or self.soft_counts is not None

    @property
    def overlaps(self) -> bool:
        """Whether states may be in any interface node, as contexts are in soft classes."""
        return self.counts is not None and self.counts.held_out is not None

    @property
    def source(self) -> "Source":
        """What draws all weights: the posterior, or that of soft boxes."""
        return self.posterior if self.soft_counts is None else self.soft_posterior

    def values(
        self,
        horizon: int | None = None,
        discount: float = 1.0,
        *,
        offer: Offer = "expected",
        criterion: "Criterion | None" = None,
    ) -> list[float]:
        """Return the maximum expected utility of every interface node; NaN where nothing is known.

        A node in which no decision is known has the lowest value of all others.
        """
        from rspmn.infer.bellman import values
        from rspmn.infer.criterion import criterion_or_meu

        return values(self.offering(offer), horizon, discount, criterion_or_meu(criterion))

    def action_values(
        self,
        state: object = None,
        horizon: int | None = None,
        discount: float = 1.0,
        **rule: Unpack[PolicyOptions],
    ) -> "list[ActionValue]":
        """Return the expected utility of every value of the next decision, with its support.

        This is `Policy.action_values` for a single query. The parameters are those of `meu`, but
        the decision is made now: missing variables are averaged over.
        """
        return self.policy(horizon, discount, **rule).action_values(state)

    def act(
        self,
        state: object = None,
        horizon: int | None = None,
        discount: float = 1.0,
        **rule: Unpack[PolicyOptions],
    ) -> Any:
        """Return the best decision in a state: a value, or a mapping of several decisions.

        This is `Policy.act` for a single query; a state that was never observed raises an error.
        To act in many states, make a policy once.
        """
        return self.policy(horizon, discount, **rule).act(state)

    def best_decisions(
        self,
        state: object = None,
        horizon: int | None = None,
        discount: float = 1.0,
        **rule: Unpack[PolicyOptions],
    ) -> "list[ActionValue]":
        """Return all best values of the next decision, ties included; the first is to be chosen."""
        from rspmn.infer.actions import best_among

        return best_among(self.action_values(state, horizon, discount, **rule))

    def policy(
        self,
        horizon: int | None = None,
        discount: float = 1.0,
        otherwise: "Value | Mapping[str, Value] | None" = None,
        *,
        offer: Offer = "expected",
        criterion: "Criterion | None" = None,
        forbid: "Rules" = (),
        only: "Rules" = (),
        min_support: float = 0.0,
        safe: bool = True,
    ) -> "Policy":
        """Return the decisions to recommend over `horizon` steps, or in the limit of many.

        Parameters
        ----------
        horizon, discount, offer, criterion
            As for `meu`.
        otherwise
            The action in states that were never observed, or in which all actions are forbidden;
            by default, `act` raises an error there.
        forbid
            Actions to exclude, `["pickup"]`, optionally by state, "vasopressor when map > 80" or
            `{"vasopressor": "map > 80"}`. See `rspmn.infer.constraints`.
        only
            In the same form, the only actions to allow.
        min_support
            The minimum number of logged steps of an action in similar states.
        safe
            Whether the plan may be nearer to practice than that of maximum expected utility, where
            the log does not support that to be better than practice; `policy.choice` says what was
            chosen, and why. See `rspmn.trust.safe_choice`. False is the plan of maximum expected
            utility, as is any model without counts, or a criterion of your own.

        Examples
        --------
        >>> from rspmn.envs.paper_grid import paper_grid
        >>> grid = paper_grid()
        >>> grid.policy(4).act({"x": 0, "y": 0})
        'down'
        >>> grid.policy(4, forbid="down when x == 0").act({"x": 0, "y": 0})
        'right'
        """
        from rspmn.infer.constraints import constraints
        from rspmn.infer.criterion import criterion_or_meu
        from rspmn.infer.policy import Policy

        if not isinstance(safe, bool | np.bool_):
            raise EvidenceError(f"safe: expected True or False, found {safe!r}")
        template = self.offering(offer).template

        def of(base: "Criterion") -> "Policy":
            rule = constraints(self.schema, template, forbid, only, min_support, base)
            return Policy(self, horizon, discount, otherwise, offer, rule)

        if not safe or criterion is not None or not self.offering(offer).is_counted:
            return of(criterion_or_meu(criterion))
        from rspmn.trust.safe_choice import safe_policy

        return safe_policy(of, self._choices.setdefault(offer, {}))

    @cached_property
    def _choices(self) -> "dict[str, dict[tuple[object, ...], SafeChoice]]":
        """The safe choices that were made, by what is offered, horizon, discount and rules."""
        return {}

    def log_likelihood(
        self, episodes: Episodes, smoothed: bool | float = True
    ) -> Array:  # [num_episodes]
        """Return the log-likelihood of each episode, given its decisions.

        A learned model is smoothed: unobserved values are improbable, not impossible. `smoothed` is
        the weight of more general estimates in steps; True means 1, and False or 0 none.
        """
        from rspmn.infer.compiled.smoothing import episode_log_likelihoods

        return episode_log_likelihoods(self, episodes, smoothed)

    def mpe(self, steps: Sequence[Evidence]) -> list[dict[str, Value]] | None:
        """Return an episode completed by the most probable values; None if it is impossible."""
        from rspmn.infer.mpe import episode_mpe

        return episode_mpe(self, steps)

    def sample(
        self,
        episodes: int,
        horizon: int,
        rng: np.random.Generator | int,
        policy: "Policy | Decide | Literal['practice'] | None" = None,
    ) -> Episodes:
        """Sample episodes from the model.

        Parameters
        ----------
        episodes, horizon
            The number of episodes, and the maximum number of steps of each.
        rng
            A random generator, or a seed.
        policy
            A `Policy`, a function as described by `rspmn.infer.Decide`, or "practice" for the
            frequencies of the log. By default, decisions are uniformly random.
        """
        from rspmn.infer.sample import draw_episodes

        return draw_episodes(self, episodes, horizon, np.random.default_rng(rng), policy)

    # ---- files -------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the model as JSON, gzipped if the name ends in .gz, atomically."""
        from rspmn.model_file import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> "RSPMN":
        """Read a model and check that it is valid."""
        from rspmn.model_file import load_rspmn

        return load_rspmn(path)
