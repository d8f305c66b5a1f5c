"""Decisions of policies and their values, with or without a horizon.

With a horizon, the best decision depends on the number of steps to go, so methods take the time
step. Queries are implemented in `rspmn.infer.answers`, for one state, and
`rspmn.infer.act_many`, for many.

A state may be partial. `value` and `act` then make different assumptions. `value` is the maximum
expected utility, `RSPMN.meu`: missing variables will be observed before the decision. `act` and
`action_values` are for a decision that is made now, based on the given variables alone:
`ActionValue.averaged_over` lists the missing ones.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rspmn.data.tables import as_table
from rspmn.display import table_html
from rspmn.errors import EvidenceError
from rspmn.infer.act_many import decisions_of_rows, node_table
from rspmn.infer.actions import ActionValue, shown_share
from rspmn.infer.answers import Answers
from rspmn.infer.compiled.mixture import Situation
from rspmn.infer.compiled.planned import Plan
from rspmn.infer.compiled.state_index import StateIndex
from rspmn.infer.criterion import MEU, Criterion
from rspmn.infer.meu import ExpectedUtility
from rspmn.model import RSPMN, Offer
from rspmn.types import Array
from rspmn.values import Value

#: What to do where the model knows nothing: a value, or one for each decision.
Otherwise = Value | Mapping[str, Value] | None


class BasePolicy:
    """Decisions in each state, and the values of states and actions.

    A state is a mapping from variables to values, a pandas Series, a record, or a row of values in
    the order of the schema. None is the start of an episode.

    Parameters
    ----------
    model
        The model.
    horizon
        The number of steps, or None for an infinite horizon.
    discount
        The discount factor per step.
    otherwise
        The action that `act` returns in states that were never observed; by default, an error is
        raised.
    offer
        Which actions may be chosen: those "tried" in a state, also those "expected" there, or
        "all"; see `RSPMN.offering`.
    criterion
        The criterion that determines the best action; by default the maximum expected utility.
    """

    def __init__(
        self,
        model: RSPMN,
        horizon: int | None = None,
        discount: float = 1.0,
        otherwise: Otherwise = None,
        offer: Offer = "expected",
        criterion: Criterion = MEU,
    ) -> None:
        self._observed = model  # without what is extrapolated
        self.model = model.offering(offer)
        _by_decision(otherwise, model.schema.decisions)
        self.otherwise, self.criterion = otherwise, criterion
        self._planned = Plan(self.model, horizon, discount, criterion)
        self.horizon, self.discount = self._planned.horizon, discount
        self._answers = Answers(self._planned, self._observed)

    def _repr_html_(self) -> str:
        return table_html(self.table(), repr(self))

    def __repr__(self) -> str:
        steps = "no horizon" if self.horizon is None else f"{self.horizon} steps"
        return f"Policy({steps}, discount {self.discount:g}, {self.model!r})"

    @property
    def bound(self) -> float:
        """How far values may be off: without a horizon, or with a long one; else 0."""
        return self._planned.bound

    # ---- questions -----------------------------------------------------------------

    def act(self, state: object = None, t: int = 0) -> Any:
        """Return the best decision in a state at time t.

        It is a value or, if a step has several decisions, a mapping of those to make now: all up to
        the next variable that is observed between two decisions. Decisions already made in this
        step are part of the state. Missing variables are averaged over, because the decision is
        made now.
        """
        known = self._answers.known(state)
        names = self.model.schema.decisions
        made = self._answers.decisions(known, t) or _by_decision(self.otherwise, names)
        if not made:
            self._answers.refuse_unseen(known)
        return dict(made) if len(names) > 1 else next(iter(made.values()))

    def action_values(self, state: object = None, t: int = 0) -> list[ActionValue]:
        """Return the expected utility of every value of the next decision, with its support.

        The action is chosen now, based on the given variables alone, and the best decisions are
        made afterwards.
        """
        return self._answers.action_values(self._answers.known(state), t)

    def value(self, state: object = None, t: int = 0) -> ExpectedUtility:
        """Return the value of a state at time t under the best decisions.

        This is `RSPMN.meu` of the state over the remaining steps: missing variables will be
        observed before the decision is made.
        """
        return self._answers.value(self._answers.known(state), t)

    def act_many(self, states: object, t: int = 0, otherwise: Otherwise = None) -> Any:
        """Return the best decision in each row of a table of states, as an array of values.

        If a step has several decisions, it is a mapping of arrays. `otherwise` is the action in
        states that were never observed; by default that of the policy.
        """
        return next(self.plan(states, [t], otherwise))

    def plan(
        self, states: object, times: Iterable[int], otherwise: Otherwise = None
    ) -> Iterator[Any]:
        """Return the best decision in each row of a table of states at several time steps.

        This is `act_many`, but the interface nodes of the states are found only once.
        """
        names = self.model.schema.decisions
        table = as_table(states)
        later = [n for n in self.model.schema.variables if n not in self.index.names]
        if any(name in table.names for name in later[:-1]):
            raise EvidenceError(
                f"act_many takes states only, {list(self.index.names)}: with decisions made or "
                "variables observed after them call act for each row"
            )
        fallback = _by_decision(self.otherwise if otherwise is None else otherwise, names)
        routes = self.index.routes(table)
        for t in times:
            found = decisions_of_rows(self._answers, routes, t, fallback)
            yield found if len(names) > 1 else found[names[0]]

    def table(self, t: int = 0) -> dict[str, list[Any]]:
        """Return one row per interface node: its states, the best decisions and their values.

        `visits` are the logged steps in the node, `steps` those of them with these decisions. Where
        a variable has the name of another column, that one ends in an underscore. Use
        `pandas.DataFrame(policy.table())` for a data frame.
        """
        return node_table(self, t).columns()

    # ---- interface nodes -----------------------------------------------------------

    @property
    def planned(self) -> Plan:
        """What is best at each max node, for every number of steps to go."""
        return self._planned

    @property
    def index(self) -> StateIndex:
        """Finds interface nodes by state."""
        return self._answers.index

    def known(self, state: object = None) -> dict[str, Value]:
        """Return what is known of a state, by variable; nothing at the start."""
        return dict(self._answers.known(state) or {})

    def situation(self, state: object = None) -> Situation | None:
        """Return which max nodes of the next decision a state may be at; None if it is not clear.

        It is clear unless something after the decision is known, or earned beside it.
        """
        return self._answers.situation(self._answers.known(state))

    def nodes(self, state: object = None) -> Array:  # [interfaces]
        """Return the probability of each interface node given a state before the first decision.

        All are 0 in a state that was never observed.
        """
        beliefs = self._answers.beliefs(self._answers.known(state))
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
        first = self._planned.offers.first[[node]]
        return float(self._planned.steps(first, self._planned.after(t))[0])

    def supported(self, node: int, t: int = 0) -> float:
        """Return the share of an interface node's value that is known to the end."""
        first = self._planned.offers.first[[node]]
        return shown_share(float(self._planned.best(first, self._planned.after(t))[2][0]))


def _by_decision(otherwise: Otherwise, decisions: Sequence[str]) -> Mapping[str, Value]:
    """Return what to do where the model knows nothing; empty if not given."""
    if otherwise is None:
        return {}
    if not isinstance(otherwise, Mapping):
        if len(decisions) == 1:
            return {decisions[0]: otherwise}
    elif set(otherwise) == set(decisions):
        return otherwise
    expected = "one value" if len(decisions) == 1 else f"values for {list(decisions)}"
    raise EvidenceError(f"otherwise: expected {expected}, found {otherwise!r}")
