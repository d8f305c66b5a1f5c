"""Memory grows with the nodes, not with their square: a line of many states."""

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from rspmn import RSPMN, Episodes, Schema
from rspmn.circuit import Categorical, NetworkBuilder
from rspmn.data.tables import as_table
from rspmn.data.windows import Windows, distinct_states
from rspmn.end_nodes import weighted_top
from rspmn.infer.compiled.assign import assign, locate
from rspmn.infer.compiled.leaf_tables import leaf_tables
from rspmn.infer.compiled.state_index import StateIndex
from rspmn.learn.em import em

STATES = 1000
#: A table of [states × states] floats.
TABLE = 8 * STATES**2


def line() -> RSPMN:
    """Return a model in which state x is followed by x + 1, or by itself at the end."""
    b = NetworkBuilder()
    roots = []
    for x in range(STATES):
        after = b.sum([b.latent(min(x + 1, STATES - 1))], [1.0])
        here = b.product([b.utility("u", 1.0, 10.0), after])
        roots.append(b.product([b.leaf("x", Categorical.certain(x)), b.max("a", {0: here})]))
    schema = Schema([["x"], ["a"]], ["a"], "u", kinds={"x": "categorical"})
    starts = [1 / STATES] * STATES
    return RSPMN(schema, weighted_top(starts), b.build(*roots), (1.0,) * STATES)


def walks(model: RSPMN) -> Episodes:
    """Return an episode of two steps from each state but the last two, and the state after them."""
    first = np.arange(STATES - 2)
    table = {
        "e": np.repeat(first, 3),
        "t": np.tile([0, 1, 2], len(first)),
        "x": (first[:, None] + [0, 1, 2]).ravel(),
        "a": np.tile([0.0, 0.0, np.nan], len(first)),
        "u": np.tile([1.0, 1.0, np.nan], len(first)),
    }
    return Episodes.from_long(table, model.schema, episode="e", time="t", ending="cut")


MODEL = line()
LOG = walks(MODEL)


def looked_up() -> None:
    """Look up one value in each leaf."""
    table = leaf_tables(MODEL.template)["x"]
    logs = table.log_probs_of(np.arange(STATES), list(range(STATES)), np.arange(STATES))
    assert (logs == 0).all()


def found() -> None:
    """Find the node of each state."""
    routes = StateIndex.of(MODEL).routes(as_table({"x": np.arange(STATES)}))
    assert (routes.node[routes.state] == np.arange(STATES)).all()


def assigned() -> None:
    """Send all windows down."""
    windows = Windows.from_episodes(LOG)
    located = locate(MODEL, distinct_states(windows))
    assert len(assign(MODEL, windows, located).window) == len(windows)


def likely() -> None:
    """Evaluate all episodes: each starts somewhere, and all else is certain."""
    logs = MODEL.log_likelihood(LOG, smoothed=False)
    assert logs == pytest.approx(-np.log(STATES))
    assert np.isfinite(MODEL.log_likelihood(LOG)).all()


def maximised() -> None:
    """Estimate the model again."""
    again, info = em(MODEL, LOG, 1)
    assert info.impossible == 0
    assert again.starts[0] == pytest.approx(1 / (STATES - 2))


def acted() -> None:
    """Decide in all states at once."""
    assert (MODEL.policy(2).act_many({"x": np.arange(STATES)}) == 0).all()


@pytest.mark.parametrize(
    "run",
    [looked_up, found, assigned, likely, acted, pytest.param(maximised, marks=pytest.mark.soak)],
)
def test_no_table_of_all_pairs(run: Callable[[], None]) -> None:
    run()  # imports are none of it
    tracemalloc.start()
    try:
        run()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < TABLE
