"""Logs of all sorts: states that are missing, episodes that end in every way."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from rspmn import Schema

SCHEMA = Schema([["x", "y"], ["a"]], ["a"], "u")
Table = dict[str, list[Any]]

steps = st.fixed_dictionaries({
    "x": st.sampled_from(["p", "q", None]),
    "y": st.sampled_from([1, 2, None]),
    "a": st.sampled_from(["l", "r"]),
    "u": st.sampled_from([0.0, -2.5, 1.25]),
})  # fmt: skip
ends = st.sampled_from(["terminated", "cut", "state", "terminal state", "empty row"])
logs = st.lists(st.tuples(st.lists(steps, min_size=1, max_size=4), ends), min_size=1, max_size=6)


def long_table(log: list[tuple[list[dict[str, Any]], str]], zero: int) -> Table:
    """Return a table of one row per step, in order."""
    rows = []
    for episode, (of_episode, end) in enumerate(log):
        found = [dict(step, done=False) for step in of_episode]
        if end in ("state", "terminal state", "empty row"):
            state = {"x": None, "y": None} if end == "empty row" else {"x": "r", "y": 2}
            found.append({**state, "a": None, "u": None, "done": end == "terminal state"})
        elif end == "terminated":
            found[-1]["done"] = True
        rows += [{"episode": episode, "time": zero + t, **row} for t, row in enumerate(found)]
    return {name: [row[name] for row in rows] for name in rows[0]}


def shuffled(table: Table, rng: np.random.Generator) -> Table:
    order = rng.permutation(len(table["time"]))
    return {name: [column[k] for k in order] for name, column in table.items()}
