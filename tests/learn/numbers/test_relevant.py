"""Which numbers of the state matter, and why others are set aside."""

import numpy as np
import pytest

import rspmn
from number_worlds import corridor
from rspmn import Schema
from rspmn.data.windows import Windows
from rspmn.errors import DataError
from rspmn.learn import LearnConfig, learn_rspmn
from rspmn.learn.irrelevant import Reason


def two_products(episodes: int, weeks: int, seed: int = 0) -> Windows:
    """Return the log of a shop: what is ordered of two products arrives in the week after next.

    It orders up to a level, of each product by itself, but for a fifth of random orders.
    """
    rng, sizes = np.random.default_rng(seed), np.array([0, 5, 10])
    stock = rng.integers(0, 16, (episodes, 2))
    coming = np.zeros((episodes, 2), dtype=int)
    log: dict[str, list[object]] = {}
    for week in range(weeks):
        there = stock + coming
        order = sizes[np.where(there < 6, 2, np.where(there < 9, 1, 0))]
        drawn = rng.random((episodes, 2)) < 0.2
        order = np.where(drawn, rng.choice(sizes, (episodes, 2)), order)
        demand = rng.poisson(3, (episodes, 2))
        sold = np.minimum(stock, demand)
        left = stock - sold
        earned = (5 * sold - 2 * (demand - sold) - 0.3 * left - 2 * order - (order > 0)).sum(axis=1)
        facts = {"episode": np.arange(episodes), "time": np.full(episodes, week), "u": earned}
        for k, product in enumerate("ab"):
            facts |= {
                f"stock_{product}": stock[:, k] * 1.0,
                f"coming_{product}": coming[:, k] * 1.0,
            }
            facts[f"order_{product}"] = order[:, k]
        for name, column in facts.items():
            log.setdefault(name, []).extend(column.tolist())
        stock, coming = np.minimum(30, left + coming), order
    state = ["stock_a", "coming_a", "stock_b", "coming_b"]
    orders = ["order_a", "order_b"]
    kinds = dict.fromkeys(state, "continuous")
    return rspmn.windows(
        log, Schema([state, *([o] for o in orders)], orders, "u", kinds), ending="cut"
    )


def mirrors(episodes: int, seed: int = 0) -> Windows:
    """Return the log of two numbers that "turn" changes the sign of; alike signs earn 1."""
    rng = np.random.default_rng(seed)
    log: dict[str, list[object]] = {n: [] for n in ("episode", "time", "x", "y", "a", "u")}
    for episode in range(episodes):
        x, y = rng.uniform(-1, 1, 2).tolist()
        for time in range(5):
            turns = bool(rng.random() < 0.5)
            row = (episode, time, x, y, "turn" if turns else "rest", float(x * y > 0))
            for name, value in zip(log, row, strict=True):
                log[name].append(value)
            x, y = (-x if turns else x), float(np.clip(y + rng.normal(0, 0.1), -1, 1))
    return rspmn.windows(log, Schema([["x", "y"], ["a"]], ["a"], "u"), ending="cut")


@pytest.mark.parametrize("weeks", [4, 12])
def test_what_decisions_move_is_no_habit(weeks: int) -> None:
    """A log of four weeks, 600 steps with a successor, is too short for states of four numbers.

    With three knots they are 81, and 10 steps for each are wanted.
    """
    _, info = learn_rspmn(two_products(200, weeks))
    assert len(info.numbers.relevant) == (3 if weeks == 4 else 4)
    assert set(info.aside.values()) == ({Reason.LARGE} if weeks == 4 else set())


def test_two_numbers_that_matter_only_together() -> None:
    """Half of all steps earn 1, whatever either number is."""
    _, info = learn_rspmn(mirrors(300))
    assert set(info.numbers.relevant) == {"x", "y"}
    assert not info.aside


def test_a_variable_is_kept_on_demand() -> None:
    log, schema = corridor(200, seed=0)
    windows = rspmn.windows(log, schema, terminated="over")
    _, info = learn_rspmn(windows)
    assert set(info.aside) == {"attribute"}
    _, kept = learn_rspmn(windows, LearnConfig(keep=["attribute"]))
    assert "attribute" in kept.numbers.relevant
    assert not kept.aside
    with pytest.raises(DataError, match="keep: 'site' is not known before the first decision"):
        learn_rspmn(windows, LearnConfig(keep=["site"]))
    with pytest.raises(DataError, match="keep: expected several names, or 'all', found 'site'"):
        LearnConfig(keep="site")
