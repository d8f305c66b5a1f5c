"""Evidence: the known values of some variables."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rspmn.circuit import Network
from rspmn.circuit.network import value_type
from rspmn.errors import DataError, EvidenceError, did_you_mean
from rspmn.expressions import missing_of
from rspmn.expressions.evaluate import Arrays, fold
from rspmn.model import Evidence
from rspmn.schema import Schema
from rspmn.values import Mark, Value, as_value, is_missing

#: Evidence that was checked: known values only, as Python scalars.
Known = dict[str, Value]


def is_whole(known: Known, schema: Schema, aside: Sequence[str] = ()) -> bool:
    """Return whether a decision is next, and all that is observed before it is known.

    And nothing else is. Variables that were set aside do not matter.

    >>> schema = Schema([["x", "y"], ["a"]], ["a"], "u")
    >>> is_whole({"x": 1, "y": 2}, schema), is_whole({"x": 1}, schema), is_whole({}, schema)
    (True, False, False)
    """
    decision = next((name for name in schema.decisions if name not in known), None)
    if decision is None:
        return False
    return {*known} - {*aside} == {*schema.known_before(decision)} - {*aside}


def as_state(state: object, schema: Schema) -> Evidence:
    """Return a state as values by variable.

    It may be given so, as a pandas Series, as a record with names, or as a row: values in the
    schema's order, of all variables up to a decision. Variables that are expressions may be given
    by the columns that they are computed from. A variable whose absence tells something
    (`Schema.informative`) is missing if it is not given, or None. Columns of the log that are no
    variables, such as that of episodes, are left out.

    >>> as_state((1, "b"), Schema([["x", "y"], ["a"]], ["a"], "u"))
    {'x': 1, 'y': 'b'}
    >>> as_state({"floor": 3}, Schema([["floor > 0"], ["a"]], ["a"], "u"))
    {'floor > 0': True}
    >>> as_state({"episode": 7, "x": 1}, Schema([["x"], ["a"]], ["a"], "u"))
    {'x': 1}
    """
    if isinstance(state, Mapping):
        if not schema.about_log.isdisjoint(state):
            state = {name: raw for name, raw in state.items() if name not in schema.about_log}
        state = _with_absence(state, schema) if schema.informative else state
        return _with_computed(state, schema) if schema.computed else state
    raw: Any = state
    if isinstance(state, np.void) and state.dtype.names:
        return as_state({name: raw[name] for name in state.dtype.names}, schema)
    for to_mapping in ("_asdict", "to_dict"):  # named tuples, pandas Series
        if hasattr(state, to_mapping):
            return as_state(dict(getattr(raw, to_mapping)()), schema)
    is_row = isinstance(state, Sequence) and not isinstance(state, str | bytes)
    if not is_row and not (isinstance(state, np.ndarray) and state.ndim == 1):
        raise EvidenceError(
            f"expected values by variable, as in {{'x': 1}}, or a row of values, "
            f"found {type(state).__name__}"
        )
    expected = [schema.known_before(decision) for decision in schema.decisions]
    expected = expected or [schema.state_variables]
    names = next((names for names in expected if len(names) == len(raw)), None)
    if names is None:
        raise EvidenceError(
            f"expected a row of {len(expected[0])} values, for {list(expected[0])}, "
            f"found {len(raw)} values"
        )
    found = dict(zip(names, raw, strict=True))
    return _with_absence(found, schema) if schema.informative else found


def _with_absence(state: Evidence, schema: Schema) -> Evidence:
    """Return a state that says which variables are missing, where their absence tells something.

    Those known before the first decision that is not given. `{"crp is missing": None}` leaves open
    whether it is.
    """
    given = [name in state for name in schema.decisions]
    until = given.index(False) if False in given else len(given)
    known = [name for group in schema.information_sets[: until + 1] for name in group]
    return {
        absence: is_missing(state.get(name))
        for name, absence in schema.informative.items()
        if name in known
    } | dict(state)


def _with_computed(state: Evidence, schema: Schema) -> Evidence:
    """Return a state with the variables that are computed from values which are no variables."""
    variables = schema.variables
    given = {name: raw for name, raw in state.items() if name not in variables}
    if not given:
        return state
    found = {name: raw for name, raw in state.items() if name not in given}
    present = {n: np.array([v]) for n, v in state.items() if not is_missing(v)}
    used: set[str] = set()
    for name, expression in schema.computed.items():
        columns = expression.columns(state)
        used.update(columns)
        if name in found or not columns or not all(column in present for column in columns):
            continue
        try:
            term = fold(expression, Arrays(present))
        except DataError as error:
            raise EvidenceError(str(error)) from None
        value = term.value[0]
        found[name] = bool(value) if term.sort == "condition" else value
    return found | {name: raw for name, raw in given.items() if name not in used}


def known_values(evidence: Evidence, network: Network) -> Known:
    """Return the known values; refuse variables that the network does not have.

    A value that the network never saw is not an error: its likelihood is 0.
    """
    if not isinstance(evidence, Mapping):
        raise EvidenceError(
            f"expected values by variable, as in {{'x': 1}}, found {type(evidence).__name__}"
        )
    utilities, types = network.utilities, network.value_types
    known: Known = {}
    for name, raw in evidence.items():
        if name in utilities:
            raise EvidenceError(f"{name!r} is the utility: it is computed and cannot be evidence")
        _check_name(name, types)
        if is_missing(raw):
            continue
        value = known[name] = as_value(raw, f"evidence for {name!r}", EvidenceError)
        if not isinstance(value, Mark) and types[name] and value_type(value) not in types[name]:
            raise EvidenceError(
                f"evidence for {name!r}: its values are {' and '.join(sorted(types[name]))}, "
                f"found {value!r}"
            )
    return known


def open_variables(names: Iterable[str], known: Known) -> tuple[str, ...]:
    """Return the variables that are averaged over: not known, nor known to be missing.

    >>> open_variables(["crp", "map"], {"crp is missing": True})
    ('map',)
    """
    return tuple(
        sorted(n for n in names if n not in known and known.get(missing_of(n)) is not True)
    )


def check_columns(names: Iterable[str], network: Network) -> list[str]:
    """Return the columns that are evidence; refuse those that the network does not have."""
    utilities, types = network.utilities, network.value_types
    found = [name for name in names if name not in utilities]
    for name in found:
        _check_name(name, types)
    return found


def _check_name(name: str, types: Mapping[str, frozenset[str]]) -> None:
    if name not in types:
        raise EvidenceError(f"unknown variable {name!r}: {did_you_mean(name, sorted(types))}")
