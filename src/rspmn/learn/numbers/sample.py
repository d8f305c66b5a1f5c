"""The sample of logged steps that a model of numbers keeps: its values are checked against it."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rspmn.data.columns import Column
from rspmn.data.windows import Windows
from rspmn.infer.compiled.node_membership import categories, knots, places_of, values_of_categories
from rspmn.learn.numbers.steps import Steps
from rspmn.model import RSPMN
from rspmn.successor_counts import StepSample
from rspmn.types import Array, Ints

#: So many steps, and points where episodes begin, are kept at most.
MOST_STEPS, MOST_BEGINS = 20_000, 2_000


def with_sample(model: RSPMN, windows: Windows, steps: Steps) -> RSPMN:
    """Return a model of soft boxes with a sample of the steps that it was learned from.

    Missing numbers are those that the model expects; steps that lack a category are left out.
    """
    counts = model.soft_counts
    assert counts is not None, "a model of soft boxes"
    names = [*knots(model), *categories(model)]
    every = np.arange(len(steps))
    rng = np.random.default_rng(0)
    here = _points(model, {v.name: v.column for v in steps.variables}, every)
    after, on = here.copy(), np.flatnonzero(~steps.ended)
    after[on] = _points(model, {v.name: v.after for v in steps.variables}, on)
    made = _codes_of_decisions(model, steps)
    whole = ~np.isnan(here).any(axis=1) & ~np.isnan(after).any(axis=1) & (made >= 0).all(axis=1)
    kept = _some(every[whole], MOST_STEPS, rng)
    first = np.flatnonzero(windows.starts > 0)
    begins = _points(model, {v.name: windows.columns[v.name] for v in steps.variables}, first)
    begun = _some(np.flatnonzero(~np.isnan(begins).any(axis=1)), MOST_BEGINS, rng)
    if not (len(kept) and len(begun)):
        return model
    sample = StepSample(
        len(names), _listed(here[kept]), _listed(after[kept]), tuple(made[kept].ravel().tolist()),
        tuple(steps.ended[kept].astype(np.int64).tolist()),
        _listed(steps.utility.numbers()[kept]), _listed(steps.counts[kept]),
        _listed(begins[begun]), _listed(windows.starts[first][begun].astype(np.float64)),
    )  # fmt: skip
    return replace(model, soft_counts=replace(counts, sample=sample))


def _points(model: RSPMN, columns: Mapping[str, Column], rows: Ints) -> Array:
    """Return some rows as points, [n, columns]; NaN for categories of no interface node."""
    at, values = knots(model), values_of_categories(model)
    taken = {name: column.take(rows) for name, column in columns.items()}
    numbers = np.stack([taken[name].numbers() for name in at], axis=1)
    found = [numbers]
    for name, domain in values.items():
        code = {value: c for c, value in enumerate(domain)}
        codes = np.array([*(code.get(v, np.nan) for v in taken[name].domain), np.nan])
        found.append(codes[taken[name].data][:, None])
    lacks = np.isnan(numbers)
    some = np.flatnonzero(lacks.any(axis=1))
    if len(some):
        known = {name: column.take(some) for name, column in taken.items()}
        of_nodes = np.nan_to_num(np.stack([*at.values()], axis=1))
        expected = places_of(model, known, len(some)).at_states(of_nodes, np.nan)
        numbers[some] = np.where(lacks[some], expected, numbers[some])
    return np.hstack(found)


def _codes_of_decisions(model: RSPMN, steps: Steps) -> Ints:  # [steps, decisions]
    """Return the places of decisions among the values that the model offers; -1 for others."""
    found = np.empty((len(steps), len(steps.decisions)), dtype=np.int64)
    for k, name in enumerate(steps.decisions):
        code = {value: c for c, value in enumerate(model.offers.values(name))}
        codes = np.array([code.get(action[k], -1) for action in steps.actions])
        found[:, k] = codes[steps.action]
    return found


def _some(rows: Ints, most: int, rng: np.random.Generator) -> Ints:
    """Return at most so many of some rows, in order."""
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def _listed(numbers: Array) -> tuple[float, ...]:
    return tuple(numbers.ravel().tolist())
