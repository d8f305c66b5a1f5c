"""What to do in single decision problems: the questions that `SPMN` answers (Sec. 2).

Where nothing but what precedes a decision is known, a compiled form of the network answers for many
contexts at once (`rspmn.infer.compiled.decisions`); otherwise the network does, node by node.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.availability import label
from rspmn.data.columns import Column
from rspmn.data.tables import as_table
from rspmn.errors import EvidenceError, did_you_mean
from rspmn.infer.actions import ActionValue, action_values, best_among
from rspmn.infer.available_actions import checked
from rspmn.infer.compiled.decisions import Worths
from rspmn.infer.criterion import Criterion, criterion_or_meu
from rspmn.infer.evidence import Known, as_state, check_columns, is_whole, known_values
from rspmn.infer.meu import ExpectedUtility, meu
from rspmn.model import Evidence
from rspmn.spmn import SPMN
from rspmn.types import Array, Bools, Ints, objects
from rspmn.values import UNKNOWN, unused


def known_of(model: SPMN, state: object) -> Known:
    """Return what is known of a state, by variable."""
    return {} if state is None else known_values(as_state(state, model.schema), model.network)


def best_utility(model: SPMN, state: object, criterion: Criterion | None) -> ExpectedUtility:
    """Return the maximum expected utility; if nothing is lacking, that of the best decision."""
    known = known_of(model, state)
    found = meu(model.network, known, criterion=criterion_or_meu(criterion))
    if found.supported and is_whole(known, model.schema):
        best = best_among(values_of_actions(model, known, criterion_or_meu(criterion)))
        if not best:  # laws forbid all
            return ExpectedUtility(math.nan, 0.0, 0.0)
        return ExpectedUtility(best[0].utility, best[0].supported, best[0].steps)
    return found


def values_of_actions(model: SPMN, state: object, criterion: Criterion | None) -> list[ActionValue]:
    """Return what every value of the next decision is worth."""
    known = known_of(model, state)
    asked = _next_decision(model, known)
    compiled = None if asked is None or criterion is not None else model.compiled(asked)
    if compiled is None or any(name not in compiled.variables for name in known):
        answers = action_values(model.network, known, asked, criterion=criterion_or_meu(criterion))
        return checked(answers, known, model)
    found = compiled(compiled.context(known))
    missing = compiled.missing(known)
    usual = _usual(model, found, not missing)[0]
    answers = checked(found.answers(0, missing, float(usual)), known, model)
    if missing or not usual or not _departs(model, found.decision):
        return answers
    best = {each.value for each in model.recommended.action_values(known) if each.best}
    return [replace(each, best=each.value in best) for each in answers] if best else answers


def _departs(model: SPMN, decision: str) -> bool:
    """Tell whether what is recommended is not always of maximum expected utility."""
    choice = model.recommended.choice if decision == model.schema.decisions[0] else None
    return choice is not None and not choice.is_plain


def decide(model: SPMN, table: object) -> dict[str, NDArray[Any]]:
    """Return what to do in each row of a table of states, as columns; see `SPMN.decide`."""
    rows = as_table(table)
    names = [name for name in rows.names if name in model.schema.variables]
    if rows.names and not names:
        valid = model.schema.variables[:-1]
        raise EvidenceError(
            f"the table has no variable of the model: {did_you_mean(rows.names[0], valid)}"
        )
    check_columns(names, model.network)
    asked = _next_decision(model, dict.fromkeys(names))
    compiled = None if asked is None else model.compiled(asked)
    if compiled is None:
        raise EvidenceError("no decision is left to make, or there are rewards before it")
    known = [name for name in names if name in compiled.variables]
    columns = {name: rows.coded(name, model.schema.kinds.get(name)) for name in known}
    every = compiled(compiled.contexts(columns, rows.rows))
    found = _lawful(model, every, columns)
    decision = compiled.decision
    forbidden = every.available.any(axis=1) & ~found.available.any(axis=1)  # all, by laws
    whole = ~np.any([column.missing for column in columns.values()], axis=0)
    whole &= all(name in columns for name in model.schema.known_before(compiled.decision))
    best = _recommended(model, found, columns, whole)
    each = np.arange(rows.rows), best
    place = np.where(forbidden, len(found.values), best)
    values = (*found.values, None) if forbidden.any() else found.values
    alike = len({type(value) for value in values}) == 1
    return {
        decision: (np.array(values) if alike else objects(values))[place],
        unused("utility", [decision]): np.where(forbidden, np.nan, found.utility[each]),
        unused("error", [decision]): np.where(forbidden, np.nan, np.sqrt(found.variance[each])),
        unused("usual", [decision]): _usual(model, found, whole),
    }


def _next_decision(model: SPMN, known: Evidence) -> str | None:
    return next((name for name in model.schema.decisions if name not in known), None)


def _lawful(model: SPMN, found: Worths, columns: Mapping[str, Column]) -> Worths:
    """Return what decisions are worth, those that laws forbid in a row not being available."""
    available = found.available.copy()
    for law in model.schema.laws:
        if law.decision == found.decision and all(name in columns for name in law.variables):
            named = np.array([label(value) == law.value for value in found.values], dtype=bool)
            holds = law.holds({n: columns[n].for_expressions() for n in law.variables})
            available[np.ix_(~holds, named)] = 0.0
    return replace(found, available=available)


def _recommended(
    model: SPMN, found: Worths, columns: Mapping[str, Column], whole: Bools
) -> Ints:  # [rows]
    """Return the place of the value to recommend: that of the safe choice where contexts are known.

    Of later decisions, and where values are missing, it is the best.
    """
    if not _departs(model, found.decision):
        return found.best
    place = {value: k for k, value in enumerate(found.values)}
    table = {name: objects(column.decode()) for name, column in columns.items()}
    otherwise = dict.fromkeys(model.schema.decisions, UNKNOWN)
    made = model.recommended.act_many(table, otherwise=otherwise)
    made = made[found.decision] if isinstance(made, dict) else made
    at = np.array([place.get(value, -1) for value in made.tolist()])
    return np.where((at >= 0) & whole, at, found.best)


def _usual(model: SPMN, found: Worths, whole: bool | Bools) -> Array:  # [rows]
    """Return how usual contexts are; only those of the first decision can be compared."""
    usual = np.where(found.possible, 1.0, 0.0)
    if not model.usual or found.decision != model.schema.decisions[0]:
        return usual
    logs = found.log_likelihood + 1e-9 * (1 + np.abs(found.log_likelihood))
    share = np.searchsorted(np.array(model.usual), logs, side="right") / len(model.usual)
    return np.asarray(np.where(whole & found.possible, share, usual))
