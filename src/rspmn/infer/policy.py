"""Policies: what to do in each state, over a horizon or for ever.

Over a horizon the best choice depends on the steps to go, so a policy knows its horizon and takes
the time step. States are found by tables and values are arrays; what the tables cannot answer, as
evidence on variables between decisions, goes through the network.

A state may be partial. What it is worth (`value`) and what to do in it (`act`) are then different
questions. `value` is the maximum expected utility, `RSPMN.meu`: what is not known will be observed
before the decision. `act` and `action_values` are about a decision that is made now, on what is
given alone: `ActionValue.averaged_over` names the variables that it was made without.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rspmn.circuit import Network
from rspmn.data.tables import as_table
from rspmn.errors import EvidenceError
from rspmn.infer import actions
from rspmn.infer.actions import (
    ActionValue,
    best_among,
    judged,
    mark_extrapolated,
    shown_share,
)
from rspmn.infer.branches import objects
from rspmn.infer.compiled.beliefs import Beliefs, Routes
from rspmn.infer.compiled.mixture import Situation, decide_all, decide_one, scores_of
from rspmn.infer.compiled.offers import Offers
from rspmn.infer.compiled.planned import Planned
from rspmn.infer.compiled.state_index import StateIndex
from rspmn.infer.constraints import Constraints
from rspmn.infer.criterion import MEU, Criterion
from rspmn.infer.evidence import Known, as_state, known_values, open_variables
from rspmn.infer.lawful import checked, is_lawful
from rspmn.infer.meu import ExpectedUtility, recurrent_meu
from rspmn.model import RSPMN
from rspmn.schema import Schema
from rspmn.types import Array, Ints
from rspmn.values import Value, as_value, is_missing, show

if TYPE_CHECKING:
    from rspmn.explain import Explanation, ReturnDistribution
    from rspmn.explain.explain import Explainer
    from rspmn.explain.information import InformationValue
    from rspmn.explain.sensitivity import Event, Sensitivity
    from rspmn.explain.tail import TailPolicy
    from rspmn.trust.honest import HonestValue
    from rspmn.trust.how_sure import DrawnPlan, HowSure
    from rspmn.trust.unseen import Logged

#: What to do where the model knows nothing: a value, or one for each decision.
Otherwise = Value | Mapping[str, Value] | None
#: Makes the plan of a policy.
Planner = Callable[[RSPMN, int | None, float, Criterion], Planned]


class Policy:
    """The best decisions of a model. Made by `RSPMN.policy` and `SPMN.policy`.

    A state is a mapping from variables to values, a pandas Series, a record, or a row: values in
    the schema's order. None is the start of an episode.

    Parameters
    ----------
    model
        The model.
    horizon
        The steps of an episode, or None: for ever.
    discount
        Per step.
    otherwise
        What `act` answers in a state that the model never saw; without it that is an error.
    allow_untried
        Whether it may choose what was never tried in a state.
    criterion
        The rule that decides which action is best; by default the maximum expected utility.
    planner
        Makes the plan, of the model, horizon, discount and criterion.
    """

    def __init__(
        self,
        model: RSPMN,
        horizon: int | None = None,
        discount: float = 1.0,
        otherwise: Otherwise = None,
        allow_untried: bool = False,
        criterion: Criterion = MEU,
        planner: Planner = Planned,
    ) -> None:
        self.allow_untried = allow_untried and model.untried is not None
        self._observed = model  # without what is extrapolated
        self.model = model.with_untried() if allow_untried else model
        _check_otherwise(otherwise, model.schema)
        self.otherwise, self.criterion = otherwise, criterion
        self._planned = planner(self.model, horizon, discount, criterion)
        self._limits = criterion if isinstance(criterion, Constraints) else None
        self.horizon, self.discount = self._planned.horizon, discount
        self._index = self.model.state_index
        with np.errstate(divide="ignore"):
            starts = np.log(model.starts)
        self._start = Beliefs.of_one(np.arange(model.num_interfaces), starts)

    def __repr__(self) -> str:
        steps = "for ever" if self.horizon is None else f"{self.horizon} steps"
        return f"Policy({steps}, discount {self.discount:g}, {self.model!r})"

    @property
    def bound(self) -> float:
        """How far values without a horizon may be from their limit; 0 with a horizon."""
        return self._planned.bound

    # ---- questions -----------------------------------------------------------------

    def act(self, state: object = None, t: int = 0) -> Any:
        """Return what to do in a state at time t.

        Returned is a value; with several decisions in a step, a mapping of those to make now: all
        up to the next variable that is observed between two decisions. Decisions already made in
        this step are part of the state. What the state lacks is averaged over: the decision is
        made now, on what is given alone.
        """
        known = self._known(state)
        self._offered(known)  # refuses a state in which nothing is left to decide
        after = self._planned.after(t)
        beliefs = self._beliefs(known)
        made: dict[str, Value] = {}
        if beliefs is None:
            made = self._act_by_answers(known, t)
        elif beliefs.is_certain:
            made, _ = self._planned.decisions(int(beliefs.nodes[0]), after)
        if beliefs is not None and len(made) < len(self._planned.together):
            codes = decide_one(self._planned, beliefs, after)
            made = self._act_by_answers(known, t) if codes is None else self._named(codes)
        if not self._is_settled(made, known):
            made = self._act_by_answers(known, t)
        if not made:
            return self._unseen(known)
        return dict(made) if len(self.model.schema.decisions) > 1 else next(iter(made.values()))

    def action_values(self, state: object = None, t: int = 0) -> list[ActionValue]:
        """Return what every value of the next decision is worth, with its support.

        It is the worth of an action that is chosen now, on what is given alone, the best decisions
        made after it.
        """
        known = self._known(state)
        decision, domain = self._offered(known)
        by_value = {answer.value: answer for answer in self._answers(known, t)}
        answers = [by_value[value] for value in domain]
        if not self.allow_untried:
            return answers
        return mark_extrapolated(answers, self._tried(known, decision))

    def how_sure(self, state: object = None, t: int = 0) -> "HowSure":
        """Return how sure the next decision is: intervals of all actions, and which is best.

        In each of many draws of all weights, given what was logged, an action is taken now and
        this policy followed after it. Each action has the mean and the 90 % interval of that, and
        the share of draws in which it is best. Where the model has no counts, or nothing is known
        of an action, they are NaN, and notes say why.

        Examples
        --------
        >>> from rspmn.envs.frozen_lake import frozen_lake
        >>> from rspmn.learn import learn_rspmn
        >>> model, _ = learn_rspmn(frozen_lake().generate(2000, 8, 0))
        >>> found = model.policy(8).how_sure({"cell": 14})
        >>> found.recommended.action.value
        'down'
        """
        from rspmn.trust.how_sure import how_sure

        known = self._known(state)
        answers = self.action_values(state, t)
        beliefs = self._beliefs(known)
        possible = beliefs is not None and len(beliefs.nodes) > 0
        notes = self._logged.never(known or {}, possible)
        situation = None
        if self.model.counts is None:
            notes += ("the model has no counts of logged steps: no intervals",)
        else:
            situation = self.situation(state)
        return how_sure(answers, self._drawn, situation, self._planned.after(t), notes)

    @cached_property
    def _logged(self) -> "Logged":
        from rspmn.trust.unseen import Logged

        return Logged(self._observed)

    @cached_property
    def _drawn(self) -> "DrawnPlan":
        from rspmn.trust.how_sure import DrawnPlan

        return DrawnPlan(self._planned)

    def explain(
        self, state: object = None, t: int = 0, *, log: object = None, similar: int = 5
    ) -> "Explanation":
        """Return why the policy decides as it does in a state.

        Every action with its value, interval and support; how much of it is earned now, and where
        it leads; where the state is, which variables decide that, and the smallest change of one
        that would change the decision.

        Parameters
        ----------
        state, t
            As in `act`.
        log
            `Windows` or `Episodes`: then also the logged steps that are nearest to the state.
        similar
            The number of these.

        Examples
        --------
        >>> from rspmn.envs.paper_grid import paper_grid
        >>> found = paper_grid().policy(horizon=4).explain({"x": 0, "y": 0})
        >>> found.decided, found.margin, found.actions[0].now
        ({'action': 'down'}, 10.0, -1.0)
        >>> found.actions[0].next[0].text
        'x=0, y=1'
        """
        return self._explainer.explain(state, t, log, similar)

    def value_of_information(self, state: object, variable: str, t: int = 0) -> "InformationValue":
        """Return what it is worth to observe a variable before the next decision.

        It is the expected utility if the variable is seen first, less that of the best decision
        now: in a state that does not have it, `None` being the start. What else the state lacks
        stays unknown. Numbers are averaged over intervals of their knots.

        Examples
        --------
        >>> from rspmn.envs.paper_grid import paper_grid
        >>> found = paper_grid().policy(horizon=4).value_of_information({"x": 0}, "y")
        >>> found.gain, found.changes
        (5.0, 0.5)
        """
        return self._explainer.value_of_information(state, variable, t)

    def sensitivity(
        self, state: object = None, t: int = 0, event: "Event | None" = None
    ) -> "tuple[Sensitivity, ...]":
        """Return at which probability of what follows an action the best action changes.

        Parameters
        ----------
        state, t
            As in `act`.
        event
            What may follow, `{"x": 3}` or `END`; by default each of the next interface nodes. Its
            probability changes in this step only, all else keeping its proportions.

        Returns
        -------
        tuple
            The thresholds that exist, the nearest first: of the best action, where it is worth no
            more than the next best; of others, where they are worth as much as the best.
        """
        return self._explainer.sensitivity(state, t, event)

    @cached_property
    def _explainer(self) -> "Explainer":
        from rspmn.explain.explain import Explainer

        return Explainer(self)

    def value(self, state: object = None, t: int = 0) -> ExpectedUtility:
        """Return what a state is worth at time t, the best done in it and after it.

        This is `RSPMN.meu` of the state, over the steps that are left: what the state lacks will
        be observed before the decision is made.
        """
        after = self._planned.after(t)
        known = self._known(state)
        if self._limits is not None and set(known or ()) >= set(self._index.names):
            return self._value_of_best(known, t)
        beliefs = self._beliefs(known)
        if beliefs is not None and (self._planned.offers.first[beliefs.nodes] >= 0).all():
            return self._mean_value(beliefs, after)
        left = None if self.horizon is None else after + 1
        return recurrent_meu(self.model, known, left, self.discount, self.criterion)

    def honest_value(
        self,
        state: object = None,
        t: int = 0,
        *,
        draws: int = 300,
        rng: np.random.Generator | int = 0,
    ) -> "HonestValue":
        """Return what the policy is worth in a state at time t, with a 90 % interval.

        `value` is the highest of many estimates, so it promises too much where data are few. Here
        the policy is valued in draws from the posterior of all weights; see `docs/trust.md`.
        Without a horizon, values are updated until they settle.

        Parameters
        ----------
        state, t
            Where the episode is: by default, at its start.
        draws
            The number of draws.
        rng
            A generator, or a seed for one.

        Returns
        -------
        HonestValue
            It has `point`, `low` and `high`; the `promise`, which is `value`; the `optimism`; and
            `caveats`, which say why the interval may not hold the value.

        Examples
        --------
        >>> from rspmn.envs.grid_universe import grid_universe
        >>> from rspmn.learn import learn_rspmn
        >>> model, _ = learn_rspmn(grid_universe().generate(episodes=2000, horizon=8, rng=0))
        >>> found = model.policy(discount=0.9).honest_value()
        >>> found.low <= found.point <= found.high, found.kept
        (True, True)
        """
        from rspmn.trust.honest import honest_value

        return honest_value(self, state, t, draws, rng)

    def returns(
        self,
        horizon: int | None = None,
        state: object = None,
        t: int = 0,
        *,
        episodes: int | None = None,
        rng: np.random.Generator | int = 0,
        points: int = 10_000,
    ) -> "ReturnDistribution":
        """Return the distribution of the return: mean, quantiles, tails.

        It is computed on a grid, exactly where rewards are multiples of a common unit, and has the
        value that the policy promises as its mean: in each interface node the planned decision is
        made. Rewards of an outcome that vary are normal, as `RSPMN.sample` draws them.

        Parameters
        ----------
        horizon
            The steps that count, at most those that are left; by default all. A policy for ever
            needs it.
        state, t
            Where the episode is: by default, at its start.
        episodes
            Simulate so many episodes instead, the policy acting on the states that it sees.
        rng
            A generator, or a seed for one, for that.
        points
            Points of the grid: with more of them, `error` is less.

        Examples
        --------
        >>> from rspmn.envs.paper_grid import paper_grid
        >>> found = paper_grid().policy(horizon=4).returns(state={"x": 0, "y": 0})
        >>> found.mean, found.quantile(0.05), found.error
        (16.0, 16.0, 0.0)
        """
        from rspmn.explain.returns import policy_returns

        return policy_returns(self, horizon, state, t, episodes, np.random.default_rng(rng), points)

    def tail(self, share: float = 0.1, *, points: int = 10_000) -> "TailPolicy":
        """Return the policy whose worst share of returns, from the start, has the highest mean.

        That is the conditional value at risk of the return. Such a policy depends on what was
        earned so far: `tail.act(state, t, earned)`.

        Parameters
        ----------
        share
            The share of worst returns, above 0 and at most 1; 1 is this policy.
        points
            Budgets are kept apart on a grid of so many points; exactly, where rewards are
            multiples of a unit.

        Examples
        --------
        >>> from rspmn.envs.paper_grid import paper_grid
        >>> paper_grid().policy(horizon=4).tail(0.1).value
        16.0
        """
        from rspmn.explain.tail import TailPolicy

        return TailPolicy(self, share, points)

    def act_many(self, states: object, t: int = 0, otherwise: Otherwise = None) -> Any:
        """Return what to do in each row of a table of states: an array of values.

        With several decisions in a step, a mapping of arrays. `otherwise` is the answer for states
        that the model never saw; without it, that of the policy.
        """
        return next(self.plan(states, [t], otherwise))

    def plan(
        self, states: object, times: Iterable[int], otherwise: Otherwise = None
    ) -> Iterator[Any]:
        """Return what to do in each row of a table of states at each of some times.

        As `act_many`, but which interface nodes the states are in is found once.
        """
        names = self.model.schema.decisions
        table = as_table(states)
        later = [n for n in self.model.schema.variables if n not in self._index.names]
        if any(name in table.names for name in later[:-1]):
            raise EvidenceError(
                f"act_many takes states only, {list(self._index.names)}: with decisions made or "
                "variables observed after them call act for each row"
            )
        fallback = self._fallback(self.otherwise if otherwise is None else otherwise)
        routes = self._index.routes(table)
        for t in times:
            found = self._rows(routes, t, fallback)
            yield found if len(names) > 1 else found[names[0]]

    def table(self, t: int = 0) -> dict[str, list[Any]]:
        """Return one row for each interface node: its states, the best decisions, their worth.

        `pandas.DataFrame(policy.table())` makes it a data frame.
        """
        from rspmn.infer.policy_table import policy_table

        return policy_table(self, t)

    # ---- interface nodes -----------------------------------------------------------

    @property
    def planned(self) -> Planned:
        """What is best at each max node, for every number of steps to go."""
        return self._planned

    @property
    def index(self) -> StateIndex:
        """Finds interface nodes by state."""
        return self._index

    def known(self, state: object = None) -> dict[str, Value]:
        """Return what is known of a state, by variable; nothing at the start."""
        return dict(self._known(state) or {})

    def situation(self, state: object = None) -> Situation | None:
        """Return which max nodes of the next decision a state may be at; None if it is not clear.

        It is clear unless something after the decision is known, or earned beside it.
        """
        known = self._known(state)
        return self._situation(self._planned.offers, known) or self._later_situation(known)

    def nodes(self, state: object = None) -> Array:  # [interfaces]
        """Return how probable each interface node is in a state before the first decision.

        All are 0 in a state that the model never saw.
        """
        beliefs = self._beliefs(self._known(state))
        if beliefs is None:
            first = self.model.schema.decisions[0]
            raise EvidenceError(f"expected a state before {first!r}, found more than that")
        found = np.zeros(self.model.num_interfaces)
        found[beliefs.nodes] = beliefs.weights / (beliefs.weights.sum() or 1.0)
        return found

    def choices(self, node: int, t: int = 0) -> tuple[dict[str, Value], float]:
        """Return the best decisions at an interface node, up to what is observed between them.

        Also what they are worth: NaN if it is not known of any what follows.
        """
        made, value = self._planned.decisions(node, self._planned.after(t))
        return dict(made), value if value > -math.inf else math.nan

    def steps(self, node: int, t: int = 0) -> float:
        """Return the logged steps that support the best decisions at an interface node."""
        at = self._planned.first(node)
        return 0.0 if at is None else self._planned.steps(at, self._planned.after(t))

    def supported(self, node: int, t: int = 0) -> float:
        """Return the share of an interface node's value that is known to the end."""
        at = self._planned.first(node)
        return (
            math.nan
            if at is None
            else shown_share(self._planned.best(at, self._planned.after(t))[2])
        )

    def _beliefs(self, known: Known | None) -> Beliefs | None:
        """Return which interface nodes a state may be in; None if it has more than a state."""
        if known is None:
            return self._start
        if any(name not in self._index.names for name in known):
            return None
        return self._index.belief(known)

    def _situation(self, offers: Offers, known: Known | None) -> Situation | None:
        """Return a state before the first decision; None if only the network knows."""
        beliefs = self._beliefs(known)
        if beliefs is None:
            return None
        at = offers.first[beliefs.nodes]
        return None if (at < 0).any() else Situation(offers, beliefs, at, self._planned.together[0])

    def _later_situation(self, known: Known | None) -> Situation | None:
        """Return a state before a later decision; None if more is known than comes before it."""
        decision, _ = self._offered(known)
        network, nodes = self.model.from_anywhere, self.model.template.nodes
        before = self.model.schema.known_before(decision)
        if known is None or not set(known) <= set(before) or network.nodes[: len(nodes)] != nodes:
            return None
        reached = actions.reached_nodes(network, known, decision, (), MEU)
        flows = {self._planned.offers.number[i]: flow for i, (flow, _) in reached.items() if flow}
        if not flows.keys() <= self._planned.offers.whole:
            return None
        at, weights = np.array([*flows], np.int64), np.array([*flows.values()])
        beliefs = Beliefs(np.array([0, len(at)]), at, weights)
        return Situation(self._planned.offers, beliefs, at, decision)

    def _tried(self, known: Known | None, decision: str) -> Mapping[Value, float]:
        """Return how probable a state is in which each value of a decision was tried."""
        situation = self._situation(self._observed_offers, known)
        if situation is None:
            network = _network(self._observed, known)
            answers = actions.action_values(network, known, decision)
            return {answer.value: answer.available for answer in answers}
        weights = situation.beliefs.weights
        found = weights @ (situation.branches >= 0) / (weights.sum() or 1.0)
        return dict(zip(self._observed_offers.values(decision), found.tolist(), strict=True))

    @cached_property
    def _observed_offers(self) -> Offers:
        return Offers(self._observed.template)

    # ---- how they are answered -----------------------------------------------------

    def _by_nodes(self, situation: Situation, known: Known | None, t: int) -> list[ActionValue]:
        """Return the worth of the first decision's values in one state."""
        planned, after = self._planned, self._planned.after(t)
        found = situation.averages(planned.at(after, delays=True))
        scores = scores_of(planned, situation, found.utility)[0].tolist()
        late = np.nan_to_num(found.delay[0]).tolist()
        unseen = open_variables(self.model.schema.known_before(situation.decision), known or {})
        answers = []
        for k, value in enumerate(planned.offers.values(situation.decision)):
            branches = situation.branches[:, k]
            steps = float(planned.steps_of_branches(branches[branches >= 0], after).sum())
            answers.append(
                ActionValue(situation.decision, value, float(found.utility[0, k]),
                            float(found.available[0, k]), 0.0 if math.isinf(steps) else steps,
                            delay=late[k], averaged_over=unseen,
                            known=shown_share(found.known[0, k]),
                            supported=shown_share(found.supported[0, k]))
            )  # fmt: skip
        return judged(answers, scores, 2 * self.bound)

    def _mean_value(self, beliefs: Beliefs, after: int) -> ExpectedUtility:
        """Return what the best first decisions in nodes are worth, on average."""
        at = [self._planned.first(node) for node in beliefs.nodes.tolist()]
        found = np.array([self._planned.best(index, after) for index in at if index is not None])
        values, known, supported = found.reshape(-1, 3).T
        shares = beliefs.weights * known
        value, support = math.nan, 0.0
        if shares.any():
            value = float(shares @ np.where(known > 0, values, 0.0) / shares.sum())
        if len(at):
            support = float(beliefs.weights @ supported / beliefs.weights.sum())
        steps = sum(self._planned.steps(index, after) for index in at if index is not None)
        return ExpectedUtility(value, support, steps, self.discount * self.bound)

    def _value_of_best(self, known: Known | None, t: int) -> ExpectedUtility:
        """Return what the best of the next decision is worth in a state that is all known."""
        best = best_among(self._answers(known, t))
        if not best:
            return ExpectedUtility(math.nan, 0.0, 0.0)
        found = best[0]
        return ExpectedUtility(found.utility, found.supported, found.steps, self.bound)

    def _named(self, codes: Sequence[int]) -> dict[str, Value]:
        """Return decisions by name, given codes of their values; none if they are not known."""
        pairs = zip(self._planned.together, codes, strict=False)
        return {name: self._planned.offers.values(name)[code] for name, code in pairs}

    def _answers(
        self, known: Known | None, t: int, network: Network | None = None
    ) -> list[ActionValue]:
        """Return what all values of the next decision are worth, those forbidden marked.

        The network is asked if one is given, or where the evidence is more than tables can take.
        """
        situation = None
        if network is None:
            network = _network(self.model, known)
            situation = self._situation(self._planned.offers, known) or self._later_situation(known)
        if situation is not None:
            answers = self._by_nodes(situation, known, t)
        else:
            answers = self._by_network(network, known or {}, t)
        return checked(answers, known or {}, self.model, 2 * self.bound, self._limits)

    def _by_network(self, network: Network, known: Known, t: int) -> list[ActionValue]:
        """Ask the network, for evidence that tables cannot take."""
        future = self._planned.future(self._planned.after(t)).discounted(self.discount)
        asked = next((n for n in self.model.schema.decisions if n not in known), None)
        within = 2 * self.bound
        return actions.action_values(network, known, asked, future, self.criterion, within)

    def _act_by_answers(self, known: Known | None, t: int) -> dict[str, Value]:
        schema = self.model.schema
        given: Known = dict(known or {})
        made: dict[str, Value] = {}
        for place, name in enumerate(schema.decisions):
            if name in given:
                continue
            network = self.model.from_start if known is None else None
            best = best_among(self._answers({**given, **made}, t, network))
            if not best:
                return {}
            made[name] = best[0].value
            if schema.information_sets[place + 1]:
                break
        return made

    def _rows(
        self, routes: Routes, t: int, fallback: Mapping[str, Value]
    ) -> dict[str, NDArray[Any]]:
        """Return the decisions in each row of a table, an array for each decision."""
        codes, is_open = decide_all(self._planned, routes, self._planned.after(t))
        state, row = routes.state, routes.row
        # Laws and limits may tell states apart that are in the same nodes.
        if self.model.schema.laws or self._limits is not None:
            state, row = routes.distinct()
            codes, is_open = codes[:, routes.state[row]], is_open[routes.state[row]]
            for k, at in enumerate(row.tolist()):
                made = {} if codes[0, k] < 0 else self._named(codes[:, k].tolist())
                is_open[k] |= not self._is_settled(made, routes.known(at))
        used = np.bincount(state, minlength=len(row)) > 0
        by_network = {
            k: self._act_by_answers(routes.known(int(row[k])), t)
            for k in np.flatnonzero(is_open & used).tolist()
        }
        lost = ~is_open & (codes < 0).any(axis=0) & used
        lost[[k for k, made in by_network.items() if not made]] = True
        if lost.any() and not fallback:
            self._unseen(routes.known(int(row[np.argmax(lost)])))
        found = {}
        for name in self.model.schema.decisions:
            values = [*self._planned.offers.values(name), fallback.get(name), None]
            code = np.full(len(used), len(values) - 1)
            if name in self._planned.together:
                code = codes[self._planned.together.index(name)]
            code = np.where(lost, len(values) - 2, code)
            for k, made in by_network.items():
                if made:
                    code[k] = len(values)
                    values.append(made.get(name))
            found[name] = _looked_up(values, code[state])
        return found

    def _is_settled(self, made: Mapping[str, Value], known: Known | None) -> bool:
        """Return whether what is best at an interface node is best in a state of it.

        Laws and rules may tell states of one node apart.
        """
        if self._limits is not None and self._limits.by_state:
            return False
        laws = self.model.schema.laws
        return not laws or is_lawful(made, known or {}, laws)

    def _fallback(self, otherwise: Otherwise) -> Mapping[str, Value]:
        """Return what to do where the model knows nothing by decision; nothing if not given."""
        if otherwise is None or isinstance(otherwise, Mapping):
            return otherwise or {}
        _check_otherwise(otherwise, self.model.schema)
        return {self.model.schema.decisions[0]: otherwise}

    def _unseen(self, known: Known | None) -> Any:
        if self.otherwise is not None:
            return self.otherwise
        given = ", ".join(f"{name}={show(value)}" for name, value in (known or {}).items())
        limited = self._limits is not None
        refused = [a for a in self._answers(known, 0) if a.forbidden] if limited else []
        if refused:
            raise EvidenceError(
                f"everything that the model knows in the state {given or '(nothing known)'} is "
                f"forbidden: {'; '.join(f'{show(a.value)}: {a.forbidden}' for a in refused)}; "
                "relax a constraint, or make the policy with otherwise=..., which it returns there"
            )
        raise EvidenceError(
            f"the model knows no decision in the state {given or '(nothing known)'}: see "
            "action_values for what it knows; a policy made with otherwise=... returns that in "
            "such states"
        )

    def _known(self, state: object) -> Known | None:
        """Return what is known of a state, quickly where all of it is before the first decision."""
        if state is None:
            return None
        values = as_state(state, self.model.schema)
        names = self._index.names
        if any(name not in names for name in values):
            return known_values(values, self.model.template)
        known: Known = {}
        for name, raw in values.items():
            if type(raw) is float and -math.inf < raw < math.inf:
                known[name] = raw
            elif not is_missing(raw):
                known[name] = as_value(raw, f"evidence for {name!r}", EvidenceError)
        return known

    def _offered(self, known: Known | None) -> tuple[str, Sequence[Value]]:
        """Return the next decision and all values that it takes anywhere."""
        schema = self.model.schema
        decision = next((name for name in schema.decisions if name not in (known or ())), None)
        if decision is None:
            raise EvidenceError("no decision is left to make: the evidence holds them all")
        return decision, self._planned.offers.values(decision)


def _network(model: RSPMN, known: Known | None) -> Network:
    """Return the network of a step: the first of an episode, or one at any time."""
    return model.from_start if known is None else model.from_anywhere


def _check_otherwise(otherwise: Otherwise, schema: Schema) -> None:
    several = len(schema.decisions) > 1
    if otherwise is not None and several != isinstance(otherwise, Mapping):
        expected = f"values for {list(schema.decisions)}" if several else "one value"
        raise EvidenceError(f"otherwise: expected {expected}, found {otherwise!r}")


def _looked_up(values: Sequence[Any], code: Ints) -> NDArray[Any]:  # [n]
    """Return the values of codes."""
    used = np.flatnonzero(np.bincount(code, minlength=len(values)))
    place = np.zeros(len(values), dtype=np.int64)
    place[used] = np.arange(len(used))
    return _array([values[k] for k in used.tolist()])[place[code]]


def _array(values: list[Any]) -> NDArray[Any]:
    """Return values as an array of their own type, or of objects if they are mixed."""
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and kinds <= {bool, int, float, str}:
        return np.array(values)
    return objects(values)
