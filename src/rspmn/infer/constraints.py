"""Constraints on decisions at query time: what is forbidden, everywhere or by state.

`constraints` makes a criterion of them, which composes with any other. A rule by state, "never
vasopressor when map > 80", is checked on the state itself where a decision is made. In planning, an
interface node may hold states on both sides of a rule. Each side then takes its own best action,
and the node is worth the average of its sides, by how probable each is in the node: that is the
expected utility if the rule is kept in every state.

A rule that cannot be checked, as the state lacks a variable, is taken to forbid.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rspmn.availability import DecisionCondition, as_column, label, variables_of
from rspmn.circuit import Max, Network
from rspmn.errors import EvidenceError, did_you_mean
from rspmn.infer.branches import Branches
from rspmn.infer.criterion import MEU, Criterion, Side
from rspmn.schema import Schema
from rspmn.types import Array, Bools
from rspmn.values import Mark, Value, is_missing, is_number

#: Rules as they are given: values of a decision, each with a condition if it is a mapping. A text
#: may be a rule, "[DECISION=]VALUE [when CONDITION]".
Rules = Value | Iterable[Value] | Mapping[Any, "str | None"]

WHEN = " when "


@dataclass(frozen=True)
class Forbidden(DecisionCondition):
    """A value that a decision must not have: in no state, or where a condition holds.

    >>> rule = Forbidden("drug", "vasopressor", "map > 80", ("map",))
    >>> rule.forbids({"drug": "vasopressor"}, {"map": 85}), str(rule)
    (True, 'vasopressor when map > 80')
    """

    condition: str | None = None
    variables: tuple[str, ...] = ()
    reason: str = field(default="", compare=False)

    def __str__(self) -> str:
        when = "" if self.condition is None else f"{WHEN}{self.condition}"
        return self.reason or f"{self.value}{when}"

    def forbids(self, made: Mapping[str, Value], state: Mapping[str, Any]) -> bool:
        """Return whether it forbids decisions in a state; if that lacks a variable, it does."""
        if not self.is_about(made):
            return False
        if any(is_missing(state.get(name)) for name in self.variables):
            return True
        columns = {name: as_column([state[name]]) for name in self.variables}
        return self.condition is None or bool(self.holds(columns)[0])


class Constraints:
    """A criterion that takes nothing that is forbidden, or that too few logged steps support.

    `forbidden`: what is forbidden. `min_support`: the fewest logged steps of an action, in the
    states that are alike. `criterion`: which of the other actions is best.
    """

    def __init__(
        self, forbidden: Sequence[Forbidden], min_support: float = 0.0, criterion: Criterion = MEU
    ) -> None:
        if not is_number(min_support) or not 0 <= min_support < np.inf:
            raise EvidenceError(f"min_support: expected 0 or more steps, found {min_support!r}")
        self.forbidden, self.min_support = tuple(forbidden), float(min_support)
        self.criterion = criterion
        self._sides: dict[Branches, Sequence[Side]] = {}

    def __repr__(self) -> str:
        rules = [str(rule) for rule in self.forbidden]
        return f"Constraints({rules}, {self.min_support:g}, {self.criterion!r})"

    @property
    def by_state(self) -> tuple[Forbidden, ...]:
        """The rules that depend on the state."""
        return tuple(rule for rule in self.forbidden if rule.condition is not None)

    def reason(
        self, decision: str, value: Value, steps: float, state: Mapping[str, Any]
    ) -> str | None:
        """Return what forbids a decision in a state, in words; None if nothing does."""
        for rule in self.forbidden:
            if rule.forbids({decision: value}, state):
                return str(rule)
        return f"fewer than {self.min_support:g} steps" if steps < self.min_support else None

    def scores(self, worth: Array, branches: Branches) -> Array:  # [branches]
        """Return the scores of the criterion, NaN for what is forbidden in all states."""
        refused = np.zeros(len(worth), dtype=bool)
        for rule in self.forbidden:
            if rule.condition is None:
                refused |= self._named(rule, branches)
        if self.min_support:
            refused |= branches.steps < self.min_support
        left = np.where(refused, np.nan, worth) if refused.any() else worth
        return np.where(refused, np.nan, self.criterion.scores(left, branches))

    def sides(self, branches: Branches) -> Sequence[Side]:
        """Return the parts of max nodes in which different branches are allowed."""
        if branches not in self._sides:
            self._sides[branches] = self._divided(branches)
        return self._sides[branches]

    def _divided(self, branches: Branches) -> Sequence[Side]:
        rules = [rule for rule in self.by_state if self._named(rule, branches).any()]
        if not rules:
            return ()
        names = tuple(dict.fromkeys(name for rule in rules for name in rule.variables))
        found = branches.chances(names, lambda columns: [rule.holds(columns) for rule in rules])
        sides = []
        for held, share in found.items():
            allowed = np.ones(len(branches.node), dtype=bool)
            for rule, holds in zip(rules, held, strict=True):
                if holds:
                    allowed &= ~self._named(rule, branches)
            sides.append(Side(share, allowed))
        return sides

    @staticmethod
    def _named(rule: Forbidden, branches: Branches) -> Bools:  # [branches]
        """Return which branches a rule is about."""
        return np.array(
            [
                decision == rule.decision
                and not isinstance(value, Mark)
                and label(value) == rule.value
                for decision, value in zip(branches.decisions, branches.values, strict=True)
            ],
            dtype=bool,
        )


# ---- from what is asked for ----------------------------------------------------------------


def constraints(
    schema: Schema,
    template: Network,
    forbid: Rules = (),
    only: Rules = (),
    min_support: float = 0.0,
    criterion: Criterion = MEU,
) -> Criterion:
    """Return a criterion that keeps to constraints; the criterion itself if there are none.

    Parameters
    ----------
    schema, template
        Of the model.
    forbid
        Values that decisions must not have: one, several, or by value the condition under which
        it is forbidden. A text may be a rule, "vasopressor when map > 80"; with several decisions
        the decision is named, "drug=vasopressor when map > 80".
    only
        The values that are left, in the same form: all others are forbidden, where the condition
        holds.
    min_support
        The fewest logged steps that support an action.
    criterion
        Which of the other actions is best.

    Examples
    --------
    >>> from rspmn.envs.paper_grid import paper_grid
    >>> grid = paper_grid()
    >>> kept = constraints(grid.schema, grid.template, forbid="down when x == 0")
    >>> grid.meu({"x": 0, "y": 0}, horizon=4, criterion=kept)
    6.0
    """
    if not _each(forbid) and not _each(only) and min_support == 0:
        return criterion
    values: dict[str, dict[str, None]] = {name: {} for name in schema.decisions}
    for node in template.nodes:
        if isinstance(node, Max):
            named = [label(value) for value in node.values if not isinstance(value, Mark)]
            values[node.decision] |= dict.fromkeys(named)
    found = [_rule("forbid", given, schema, values) for given in _each(forbid)]
    found += _complement([_rule("only", given, schema, values) for given in _each(only)], values)
    if not found and min_support == 0:
        return criterion
    return Constraints(found, min_support, criterion)


def _each(rules: Rules) -> list[tuple[Value, str | None]]:
    """Return rules one by one: a value, or a text that is a rule, and its condition."""
    if isinstance(rules, Mapping):
        return [(value, condition) for value, condition in rules.items()]
    if isinstance(rules, str | bool | int | float | Mark):
        return [(rules, None)]
    return [(value, None) for value in rules]


def _rule(
    name: str,
    given: tuple[Value, str | None],
    schema: Schema,
    values: Mapping[str, Mapping[str, None]],
) -> Forbidden:
    value, condition = label(given[0]), given[1]
    everything = {text for known in values.values() for text in known}
    if condition is None and value not in everything and WHEN in value:
        value, _, condition = value.partition(WHEN)
    decision, value = _decision(name, value.strip(), schema, values)
    if value not in values[decision]:
        raise EvidenceError(
            f"{name}: {decision!r} never has the value {value!r}: "
            f"{did_you_mean(value, list(values[decision]))}"
        )
    if condition is None:
        return Forbidden(decision, value)
    condition, known = condition.strip(), schema.known_before(decision)
    variables = variables_of(condition, decision, known, f"{name}: {value}", EvidenceError)
    return Forbidden(decision, value, condition, variables)


def _decision(
    name: str, text: str, schema: Schema, values: Mapping[str, Mapping[str, None]]
) -> tuple[str, str]:
    """Return the decision that a rule is about, and the value."""
    decision, equals, value = (part.strip() for part in text.partition("="))
    if equals and decision in values:
        return decision, value
    having = [decision for decision, known in values.items() if text in known]
    if text in values and not having:
        example = next(iter(values[text]), "VALUE")
        raise EvidenceError(
            f"{name}: {text!r} is a decision: give values, as in '{text}={example}'"
        )
    if len(having) == 1 or len(values) == 1:
        return (having or list(values))[0], text
    raise EvidenceError(
        f"{name}: {text!r}: expected DECISION={text}, as there are several decisions: "
        f"{list(schema.decisions)}"
    )


def _complement(
    only: Sequence[Forbidden], values: Mapping[str, Mapping[str, None]]
) -> list[Forbidden]:
    """Return what is forbidden if nothing but some values is allowed, where conditions hold.

    A value is forbidden where a condition of others holds and none of its own does.
    """
    found = []
    for decision in dict.fromkeys(rule.decision for rule in only):
        rules = [rule for rule in only if rule.decision == decision]
        for value in values[decision]:
            own = [rule for rule in rules if rule.value == value]
            others = [rule for rule in rules if rule.value != value]
            if any(rule.condition is None for rule in own) or not others:
                continue
            always = any(rule.condition is None for rule in others)
            parts = [] if always else [" or ".join(f"({rule.condition})" for rule in others)]
            parts = [f"({part})" for part in parts] + [f"not ({rule.condition})" for rule in own]
            named = [rule.variables for rule in (*own, *(() if always else others))]
            variables = tuple(dict.fromkeys(name for names in named for name in names))
            reason = f"only {', '.join(map(str, others))}"
            condition = " and ".join(parts) or None
            found.append(Forbidden(decision, value, condition, variables, reason))
    return found
