"""Logs with more distinct windows than can be looked at together.

The structure is learned from a weighted sample of the windows. The parameters are then counted on
all of them, batch by batch: flows add up. On a cluster the counting goes to the windows, and flows
come back.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from rspmn.data.columns import Column, encode
from rspmn.data.sources.count_windows import StoredWindows
from rspmn.data.tables import split_missing
from rspmn.data.windows import Windows, group_windows
from rspmn.infer.compiled.assign import NOWHERE, place
from rspmn.learn.config import LearnConfig
from rspmn.learn.flows import Flows, count_flows
from rspmn.learn.reestimate import rebuilt
from rspmn.learn.refit import factored_flows
from rspmn.model import RSPMN
from rspmn.schema import Kind, Schema
from rspmn.types import Ints

#: Windows that are read, and sampled, at a time.
BATCH = 200_000
#: Places in trees that flows are counted on at a time: they are held in memory.
PLACES = 1_000_000


@dataclass
class SampleInfo:
    """What was sampled, and what the parameters were counted on."""

    windows: int = 0  # distinct, of the whole log
    steps: int = 0  # of the whole log
    share: float = 1.0  # of the steps, that the structure was learned from
    sampled_windows: int = 0  # distinct
    batches: int = 0  # of the second pass
    steps_placed: int = 0  # of the whole log, that the structure has a place for


def sample_of(stored: StoredWindows, most: int, seed: int) -> tuple[Windows, SampleInfo]:
    """Return a weighted sample of about so many windows."""
    share = _share(*stored.occurrences(), most)

    schema = stored.told_schema
    parts = [_from_json(text, schema) for text in stored.sample(share, seed, _to_json, BATCH)]
    found = reduce(add, parts)
    info = SampleInfo(len(stored), stored.lengths.steps, share, len(found))
    return found, info


def _share(counts: Ints, number: Ints, most: int) -> float:
    """Return the share of steps among which so many windows are to be expected."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        expected = (number * -np.expm1(counts * np.log1p(-middle))).sum()
        low, high = (middle, high) if expected < most else (low, middle)
    return high


def count_all(
    model: RSPMN, stored: StoredWindows, sample: Windows, config: LearnConfig, info: SampleInfo
) -> RSPMN:
    """Return the model with parameters counted on all windows, its structure unchanged.

    Where successors are weighed by factors too, these were learned from the sample; they weigh as
    much as there, beside the counts of all windows.
    """
    trees = place(model, sample).trees
    largest = int(np.diff(trees.node_starts).max())
    size = max(1000, min(BATCH, PLACES // max(largest, model.num_interfaces)))

    def flows_of(windows: Windows) -> str:
        placed = place(model, windows)
        flows = count_flows(model, placed, windows, with_leaves=True)
        steps = int(windows.counts[placed.here > NOWHERE].sum())
        return json.dumps([steps, flows.to_json()])

    total = Flows.none(trees)
    for text in stored.map(flows_of, size):
        steps, flows = json.loads(text)
        total += Flows.from_json(flows)
        info.steps_placed += steps
        info.batches += 1
    if config.future == "factored":
        total.led = _with_prior(total.led, model, sample, config)
    return rebuilt(model, trees, total)


def _with_prior(
    led: dict[int, dict[int, float]], model: RSPMN, sample: Windows, config: LearnConfig
) -> dict[int, dict[int, float]]:
    """Add what the factors of the sample weigh: κ·p = (κ + n)·posterior - counts, of the sample."""
    placed = place(model, sample)
    counted = count_flows(model, placed, sample, with_leaves=False)
    posterior, future = factored_flows(model, placed, sample, config.bins)
    found = {at: dict(of) for at, of in led.items()}
    for at, of in posterior.items():
        steps = sum(of.values())
        for interface, flow in of.items():
            share = flow / steps * (steps + future.strength)
            prior = share - counted.led.get(at, {}).get(interface, 0.0)
            if prior > 1e-12 * steps:
                here = found.setdefault(at, {})
                here[interface] = here.get(interface, 0.0) + prior
    return found


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
    return group_windows(
        schema, columns, following, np.array(plain["followed"], dtype=np.int8),
        np.array(plain["counts"], dtype=np.int64), np.array(plain["starts"], dtype=np.int64),
    )  # fmt: skip


def _coded(values: Iterable[Any], kind: Kind, name: str) -> Column:
    listed = list(values)
    made = np.empty(len(listed), dtype=object)
    made[:] = listed
    cells = split_missing(made)
    return encode(cells.present, cells.missing, kind, name)
