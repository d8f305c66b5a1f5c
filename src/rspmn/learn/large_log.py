"""Logs with more distinct windows than fit in memory.

The structure is learned from a weighted sample of the windows. The parameters are then estimated
from all of them, batch by batch: flows add up. On a cluster the batches are counted where they are,
and only flows are sent back.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from rspmn.data.cells import split_missing
from rspmn.data.columns import Column, encode
from rspmn.data.keys import group_weights
from rspmn.data.sources.count_windows import StoredWindows
from rspmn.data.windows import Windows, group_windows
from rspmn.infer.compiled.template_trees import RootTrees
from rspmn.learn.config import LearnConfig
from rspmn.learn.estimate import assign_shared, count, transitions_of, whole_steps
from rspmn.learn.flows import Flows
from rspmn.learn.rebuild import rebuild
from rspmn.learn.set_aside import put_back, take_out, without_variables
from rspmn.learn.successors.untried import UntriedBranches
from rspmn.model import RSPMN
from rspmn.schema import Kind, Schema
from rspmn.types import Ints

#: At most this many windows are read, and sampled, at a time.
BATCH = 200_000
#: At most this many windows are counted at a time.
COUNTED = 40_000


@dataclass
class SampleInfo:
    """What was sampled, and what the parameters were counted on."""

    windows: int = 0  # distinct, of the whole log
    steps: int = 0  # of the whole log
    share: float = 1.0  # of the steps, that the structure was learned from
    sampled_windows: int = 0  # distinct
    batches: int = 0  # of the second pass
    steps_placed: int = 0  # of the whole log, that have an interface node


def sample_of(stored: StoredWindows, most: int, seed: int) -> tuple[Windows, SampleInfo]:
    """Return a weighted sample of about `most` windows."""
    share = _share(*stored.occurrences(), most)
    schema = stored.typed_schema
    parts = [_from_json(text, schema) for text in stored.sample(share, seed, _to_json, BATCH)]
    found = replace(reduce(add, parts), last_end=stored.reader.endings.last_end)
    info = SampleInfo(len(stored), stored.lengths.steps, share, len(found))
    return found, info


def _share(counts: Ints, number: Ints, most: int) -> float:
    """Return the share of steps of which `most` distinct windows are expected."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        expected = (number * -np.expm1(counts * np.log1p(-middle))).sum()
        low, high = (middle, high) if expected < most else (low, middle)
    return high


def count_all(
    model: RSPMN, stored: StoredWindows, sample: Windows, config: LearnConfig, info: SampleInfo,
    deadline: float,
) -> RSPMN:  # fmt: skip
    """Return the model with parameters estimated from all windows, its structure unchanged.

    What weighs successors sees the sample only. What it adds to the counts there, it adds to the
    counts of all windows, if there is time left before the deadline.
    """
    narrow, leaves = take_out(model)
    trees = RootTrees(narrow.template)

    def flows_of(windows: Windows) -> str:
        windows = without_variables(windows, model.set_aside)
        windows, assigned = assign_shared(narrow, windows, leaves=True)
        flows = count(narrow, assigned, windows)
        placed = (windows.counts * assigned.share)[assigned.here >= 0]
        return json.dumps([whole_steps(placed), flows.to_json()])

    total = Flows.none(trees)
    for text in stored.map(flows_of, COUNTED):
        steps, flows = json.loads(text)
        total += Flows.from_json(flows)
        info.steps_placed += steps
        info.batches += 1
    narrow_sample = without_variables(sample, model.set_aside)
    total = _with_prior(total, trees, narrow, narrow_sample, config, deadline)
    found = rebuild(narrow, trees, total, UntriedBranches.of(model))
    found = put_back(found, model.schema, leaves)
    return replace(found, behaviour=model.behaviour, last_end=model.last_end)


def _with_prior(
    total: Flows, trees: RootTrees, model: RSPMN, sample: Windows, config: LearnConfig,
    deadline: float,
) -> Flows:  # fmt: skip
    """Add what the weighing of the sample adds to its counts: κ · π = (n + κ) · weight - count."""
    sample, assigned = assign_shared(model, sample)
    transitions, sites = transitions_of(model, assigned, sample, config, deadline=deadline)
    weights, _ = config.weighing(transitions)
    if weights.strength is None:
        return total
    steps = (
        group_weights(transitions.site, transitions.counts, transitions.sites) + weights.strength
    )
    prior = weights.weights * steps[weights.site] - weights.counts
    kept = prior > 1e-12 * steps[weights.site]
    total.count_successors(
        np.concatenate([total.led_from, sites[weights.site[kept]]]),
        np.concatenate([total.led_to, weights.interfaces[kept]]),
        np.concatenate([total.led, prior[kept]]),
    )
    if weights.spread is None:
        total.sharing = total.weighed(sites, weights).sharing
    if weights.outcomes is not None:
        total = total.with_outcomes(trees, sites, weights.outcomes)
    return total


# ---- windows as text, to come back from a cluster ------------------------------------


def _to_json(windows: Windows) -> str:
    spread = windows.columns[windows.schema.utility].spread
    return json.dumps({
        "columns": {name: column.decode() for name, column in windows.columns.items()},
        "next": {name: column.decode() for name, column in windows.next_columns.items()},
        "spread": None if spread is None else spread.tolist(),
        "followed": windows.followed.tolist(),
        "counts": windows.counts.tolist(),
        "starts": windows.starts.tolist(),
    })  # fmt: skip


def _from_json(text: str, schema: Schema) -> Windows:
    plain = json.loads(text)
    columns, following = {}, {}
    for name, values in plain["columns"].items():
        after = plain["next"].get(name, [])
        column = _coded([*values, *after], schema.kinds[name], name)
        columns[name] = column.take(np.arange(len(values)))
        if name in plain["next"]:
            following[name] = column.take(np.arange(len(values), len(values) + len(after)))
    if plain["spread"] is not None:
        earned = columns[schema.utility]
        spread = np.array(plain["spread"])
        columns[schema.utility] = Column(earned.kind, earned.data, (), spread)
    windows = Windows(
        schema, columns, following, np.array(plain["followed"], dtype=np.int8),
        np.array(plain["counts"], dtype=np.int64), np.array(plain["starts"], dtype=np.int64),
    )  # fmt: skip
    return group_windows(windows)


def _coded(values: Iterable[Any], kind: Kind, name: str) -> Column:
    listed = list(values)
    made = np.empty(len(listed), dtype=object)
    made[:] = listed
    return encode(split_missing(made), kind, name)
