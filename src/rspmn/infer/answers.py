"""What a plan says of single states: which interface nodes they may be in, what actions are worth.

States are found by tables, and what is planned in their interface nodes are arrays. What tables
cannot answer, as evidence on variables between decisions, goes through the network.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from rspmn.circuit import Network
from rspmn.errors import EvidenceError
from rspmn.infer import actions
from rspmn.infer.actions import (
    ActionValue,
    best_among,
    best_values,
    mark_extrapolated,
    shown_share,
)
from rspmn.infer.available_actions import checked, is_lawful
from rspmn.infer.compiled.beliefs import Beliefs
from rspmn.infer.compiled.mixture import Situation, decide_one, scores_of_one
from rspmn.infer.compiled.offers import Offers
from rspmn.infer.compiled.planned import Plan
from rspmn.infer.compiled.state_index import StateIndex
from rspmn.infer.constraints import Constraints
from rspmn.infer.criterion import MEU
from rspmn.infer.evaluation import evaluate
from rspmn.infer.evidence import Known, as_state, is_whole, known_values, open_variables
from rspmn.infer.meu import ExpectedUtility, averaged
from rspmn.model import RSPMN
from rspmn.schema import Kind
from rspmn.values import Value, as_value, is_missing, show

#: The most max nodes and times of which answers are kept.
MOST_KEPT = 10_000
#: Numbers below this, without their sign, are values as they are.
LARGEST = sys.float_info.max


class Answers:
    """Answers about single states, by a plan.

    `planned`: the plan, and the model that it is of. `observed`: the model without what is
    extrapolated.
    """

    def __init__(self, planned: Plan, observed: RSPMN) -> None:
        self.model, self.planned, self.observed = planned.model, planned, observed
        self.limits = planned.criterion if isinstance(planned.criterion, Constraints) else None
        self._names = frozenset(self.model.schema.information_sets[0])
        kinds = self.model.schema.kinds
        self._numbers = {n for n in self._names if kinds.get(n) in (Kind.CONTINUOUS, Kind.INTEGER)}
        with np.errstate(divide="ignore"):
            starts = np.log(self.model.starts)
        self._start = Beliefs.of_one(np.arange(self.model.num_interfaces), starts)
        self._kept: dict[tuple[int, int, tuple[str, ...]], list[ActionValue]] = {}

    # ---- states --------------------------------------------------------------------

    @cached_property
    def index(self) -> StateIndex:
        """Finds interface nodes by state."""
        return self.model.state_index

    def known(self, state: object) -> Known | None:
        """Return what is known of a state, quickly where all of it is before the first decision."""
        if state is None:
            return None
        values = as_state(state, self.model.schema)
        if not values.keys() <= self._names:
            return known_values(values, self.model.template)
        known: Known = {}
        for name, raw in values.items():
            if (type(raw) is int or type(raw) is float) and -LARGEST < raw < LARGEST:
                known[name] = raw
            elif not is_missing(raw):
                value = known[name] = as_value(raw, f"evidence for {name!r}", EvidenceError)
                if isinstance(value, str) and name in self._numbers:
                    raise EvidenceError(
                        f"evidence for {name!r}: its values are numbers, found {value!r}"
                    )
        return known

    def offered(self, known: Known | None) -> tuple[str, Sequence[Value]]:
        """Return the next decision and all values that it takes anywhere."""
        schema = self.model.schema
        decision = next((name for name in schema.decisions if name not in (known or ())), None)
        if decision is None:
            raise EvidenceError("no decision is left to make: all are given in the evidence")
        return decision, self.planned.offers.values(decision)

    def beliefs(self, known: Known | None) -> Beliefs | None:
        """Return which interface nodes a state may be in; None if it has more than a state."""
        if known is None:
            return self._start
        if not known.keys() <= self._names:
            return None
        return self.index.belief(known)

    def situation(self, known: Known | None) -> Situation | None:
        """Return which max nodes of the next decision a state may be at; None if it is not clear.

        It is clear unless something after the decision is known, or earned beside it.
        """
        return self._first_situation(self.planned.offers, known) or self._later_situation(known)

    def _first_situation(self, offers: Offers, known: Known | None) -> Situation | None:
        """Return a state before the first decision; None if only the network knows."""
        beliefs = self.beliefs(known)
        if beliefs is None:
            return None
        at = offers.first[beliefs.nodes]
        return None if (at < 0).any() else Situation(offers, beliefs, at, self.planned.together[0])

    def _later_situation(self, known: Known | None) -> Situation | None:
        """Return a state before a later decision; None if more is known than comes before it."""
        decision, _ = self.offered(known)
        network, nodes = self.model.from_anywhere, self.model.template.nodes
        before = self.model.schema.known_before(decision)
        if known is None or not set(known) <= set(before) or network.nodes[: len(nodes)] != nodes:
            return None
        reached = actions.reached_nodes(network, known, decision, (), MEU)
        flows = {index: flow for index, (flow, _) in reached.items() if flow}
        at = self.planned.offers.number[[*flows]]
        if not self.planned.offers.whole[at].all():
            return None
        weights = np.array([*flows.values()])
        beliefs = Beliefs(np.array([0, len(at)]), at, weights)
        return Situation(self.planned.offers, beliefs, at, decision)

    # ---- decisions -----------------------------------------------------------------

    def decisions(self, known: Known | None, t: int) -> Mapping[str, Value]:
        """Return the decisions to make now in a state; nothing where the model knows none."""
        self.offered(known)  # refuses a state in which nothing is left to decide
        after = self.planned.after(t)
        beliefs = self.beliefs(known)
        if beliefs is None:
            return self.decisions_one_by_one(known, t)
        made: dict[str, Value] = {}
        if beliefs.is_certain:
            made, _ = self.planned.decisions(int(beliefs.nodes[0]), after)
        if len(made) < len(self.planned.together):
            codes = decide_one(self.planned, beliefs, after)
            if codes is None:
                return self.decisions_one_by_one(known, t)
            made = self.named(codes)
        return made if self.is_settled(made, known) else self.decisions_one_by_one(known, t)

    def decisions_one_by_one(self, known: Known | None, t: int) -> dict[str, Value]:
        """Return the decisions to make now, each the best by the values of its actions."""
        schema = self.model.schema
        given: Known = dict(known or {})
        made: dict[str, Value] = {}
        for place, name in enumerate(schema.decisions):
            if name in given:
                continue
            network = self.model.from_start if known is None else None
            best = best_among(self._worths({**given, **made}, t, network))
            if not best:
                return {}
            made[name] = best[0].value
            if schema.information_sets[place + 1]:
                break
        return made

    def named(self, codes: Sequence[int]) -> dict[str, Value]:
        """Return decisions by name, given codes of their values; none if they are not known."""
        pairs = zip(self.planned.together, codes, strict=False)
        return {name: self.planned.offers.values(name)[code] for name, code in pairs}

    def is_settled(self, made: Mapping[str, Value], known: Known | None) -> bool:
        """Return whether what is best at an interface node is best in a state of it.

        Laws and rules may tell states of one node apart.
        """
        if self.limits is not None and self.limits.by_state:
            return False
        laws = self.model.schema.laws
        return not laws or is_lawful(made, known or {}, laws)

    def refuse_unseen(self, known: Known | None) -> None:
        """Raise the error of a state in which no decision is known, or none is allowed."""
        given = ", ".join(f"{name}={show(value)}" for name, value in (known or {}).items())
        limited = self.limits is not None
        refused = [a for a in self._worths(known, 0) if a.forbidden] if limited else []
        if refused:
            raise EvidenceError(
                f"all known actions in the state {given or '(nothing known)'} are forbidden: "
                f"{'; '.join(f'{show(a.value)}: {a.forbidden}' for a in refused)}; relax a "
                "constraint, or give the policy a default action with otherwise=..."
            )
        raise EvidenceError(
            f"no decision is known in the state {given or '(nothing known)'}: see action_values, "
            "or give the policy a default action with otherwise=..."
        )

    # ---- values --------------------------------------------------------------------

    def action_values(self, known: Known | None, t: int) -> list[ActionValue]:
        """Return what every value of the next decision is worth, marked if it is extrapolated."""
        decision, domain = self.offered(known)
        by_value = {answer.value: answer for answer in self._worths(known, t)}
        answers = [by_value[value] for value in domain]
        if self.model is self.observed and not self.observed.beyond:
            return answers
        return mark_extrapolated(answers, self._tried(known, decision))

    def value(self, known: Known | None, t: int) -> ExpectedUtility:
        """Return what a state is worth, the best done in it and after it.

        If all of it is known, one action is chosen in it, whichever nodes it may be in.
        """
        planned, after = self.planned, self.planned.after(t)
        if known is not None and is_whole(known, self.model.schema, self.model.set_aside):
            return self._value_of_best(known, t)
        beliefs = self.beliefs(known)
        if beliefs is not None and (planned.offers.first[beliefs.nodes] >= 0).all():
            return self._mean_value(beliefs, after)
        network = _network(self.model, known)
        future = planned.future(after).discounted(planned.discount)
        found = evaluate(network, known or {}, future, planned.criterion)[network.root]
        bound = planned.discount * planned.bound
        return ExpectedUtility(found.utility, found.supported, found.logged_steps, bound)

    def _mean_value(self, beliefs: Beliefs, after: int) -> ExpectedUtility:
        """Return what the best first decisions in nodes are worth, on average."""
        planned = self.planned
        first = planned.offers.first[beliefs.nodes]
        values, known, supported = planned.best(first, after)
        steps = float(planned.steps(first, after).sum())
        bound = planned.discount * planned.bound
        return averaged(beliefs.weights, values, known, supported, steps, bound)

    def _value_of_best(self, known: Known | None, t: int) -> ExpectedUtility:
        """Return what the best of the next decision is worth in a state that is all known."""
        best = best_among(self._worths(known, t))
        if not best:
            return ExpectedUtility(math.nan, 0.0, 0.0)
        found = best[0]
        bound = self.planned.discount * self.planned.bound
        return ExpectedUtility(found.utility, found.supported, found.steps, bound)

    def _worths(
        self, known: Known | None, t: int, network: Network | None = None
    ) -> list[ActionValue]:
        """Return what all values of the next decision are worth, those forbidden marked.

        The network is asked if one is given, or where the evidence is more than tables can take.
        """
        situation = self.situation(known) if network is None else None
        if situation is not None:
            answers = self._by_nodes(situation, known, t)
        else:
            answers = self._by_network(network or _network(self.model, known), known or {}, t)
        return checked(answers, known or {}, self.model, 2 * self.planned.bound, self.limits)

    def _by_nodes(self, situation: Situation, known: Known | None, t: int) -> list[ActionValue]:
        """Return the worth of a decision's values in one state, by what is planned in its nodes."""
        after = self.planned.after(t)
        unseen = open_variables(self.model.schema.known_before(situation.decision), known or {})
        if len(situation.at) != 1 or situation.beliefs.weights[0] != 1:
            return self._at_nodes(situation, after, unseen)
        key = int(situation.at[0]), after, unseen  # the same in all states of one node
        found = self._kept.get(key)  # other threads may empty it at any time
        if found is None:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            found = self._kept[key] = self._at_nodes(situation, after, unseen)
        return found

    def _at_nodes(
        self, situation: Situation, after: int, unseen: tuple[str, ...]
    ) -> list[ActionValue]:
        planned = self.planned
        found = situation.averages_of_one(planned.at(after, delays=True))
        scores = scores_of_one(planned, situation, found.utility, after)
        values = planned.offers.values(situation.decision)
        steps = planned.steps_of_branches(situation.branches, after).sum(axis=0)
        best = best_values(*found[:3], scores, 2 * planned.bound)
        return [
            ActionValue(situation.decision, value, worth if worth > -math.inf else math.nan,
                        shown_share(offered), 0.0 if math.isinf(n) else n, best=k in best,
                        delay=late, averaged_over=unseen, known=shown_share(share),
                        supported=shown_share(supported))
            for k, (value, n, offered, share, worth, late, supported)
            in enumerate(zip(values, steps.tolist(), *found, strict=True))
        ]  # fmt: skip

    def _by_network(self, network: Network, known: Known, t: int) -> list[ActionValue]:
        """Ask the network, for evidence that tables cannot take."""
        planned = self.planned
        future = planned.future(planned.after(t)).discounted(planned.discount)
        asked = next((n for n in self.model.schema.decisions if n not in known), None)
        within = 2 * planned.bound
        return actions.action_values(network, known, asked, future, planned.criterion, within)

    def _tried(self, known: Known | None, decision: str) -> Mapping[Value, float]:
        """Return how probable a state is in which each value of a decision was tried."""
        situation = self._first_situation(self._observed_offers, known)
        if situation is None:
            network = _network(self.observed, known)
            answers = actions.action_values(network, known, decision)
            return {answer.value: answer.available for answer in answers}
        weights = situation.beliefs.weights
        found = weights @ (situation.branches >= 0) / (weights.sum() or 1.0)
        return dict(zip(self._observed_offers.values(decision), found.tolist(), strict=True))

    @cached_property
    def _observed_offers(self) -> Offers:
        return self.observed.offers


def _network(model: RSPMN, known: Known | None) -> Network:
    """Return the network of a step: the first of an episode, or one at any time."""
    return model.from_start if known is None else model.from_anywhere
