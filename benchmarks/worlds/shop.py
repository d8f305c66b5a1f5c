"""Shops: two products ordered with a lead time, jobs sent to one of two queues, and retention.

Customers are made an offer each week; the days since their last visit jump back when they visit.
"""

from typing import Any

import numpy as np

from rspmn.schema import Kind
from rspmn.types import Array, Bools, Ints
from worlds import Made, States, World

# ---- two products, ordered with a lead time -------------------------------------------

LOTS = 0, 4, 8, 12


def _order_up_to(state: States, _t: int, _rng: np.random.Generator) -> Made:
    made = {}
    for product, level in (("a", 13), ("b", 10)):
        short = level - state[f"stock_{product}"] - state[f"coming_{product}"]
        made[f"order_{product}"] = np.clip(np.rint(short / 4), 0, 3).astype(np.int64)
    return made


def _sold(state: States, made: Made, rng: np.random.Generator) -> tuple[Array, States, Bools]:
    gain, after = np.zeros(len(made["order_a"])), States()
    room = np.zeros(len(gain))
    for product, demand, price, cost in (("a", 4.0, 6.0, 3.0), ("b", 3.0, 9.0, 5.0)):
        stock, coming = state[f"stock_{product}"], state[f"coming_{product}"]
        wanted = rng.poisson(demand, len(stock))
        sold = np.minimum(stock, wanted)
        lot = np.array(LOTS, dtype=float)[made[f"order_{product}"]]
        gain += price * sold - 2.0 * (wanted - sold) - cost * lot - 1.5 * (lot > 0)
        left = np.minimum(stock - sold + coming, 30.0)
        after |= {f"stock_{product}": left, f"coming_{product}": lot}
        room += left
    gain -= 0.1 * room + 0.05 * np.maximum(room - 15, 0) ** 2
    return gain, after, np.zeros(len(gain), dtype=bool)


_NUMBER = Kind.CONTINUOUS
_STOCKS = "stock_a", "coming_a", "stock_b", "coming_b"
INVENTORY = World(
    "inventory", 200, 30, _STOCKS, {"order_a": LOTS, "order_b": LOTS},
    lambda n, rng: {name: rng.integers(0, 9, n).astype(float) * (name[0] == "s")
                    for name in _STOCKS},
    _order_up_to, _sold, 470.0, dict.fromkeys(_STOCKS, _NUMBER),
)  # fmt: skip


# ---- jobs that are admitted to one of two queues, or refused --------------------------


def _shorter(state: States, _t: int, _rng: np.random.Generator) -> Made:
    short = np.where(state["fast"] <= 2 * state["slow"], 1, 2)
    full = state["fast"] + state["slow"] > 6
    return {"send": np.where(full, 0, short).astype(np.int64)}


def _served(state: States, made: Made, rng: np.random.Generator) -> tuple[Array, States, Bools]:
    send, fast, slow = made["send"], state["fast"], state["slow"]
    gain = state["worth"] * (send > 0) - 0.5 * (fast + slow) - 0.04 * (fast + slow) ** 2
    fast = np.maximum(fast + (send == 1) - rng.poisson(0.7, len(fast)), 0)
    slow = np.maximum(slow + (send == 2) - rng.poisson(0.35, len(slow)), 0)
    worth = rng.gamma(3.0, 3.0, len(fast))
    return gain, {"fast": fast, "slow": slow, "worth": worth}, np.zeros(len(fast), dtype=bool)


QUEUE = World(
    "queue", 200, 60, ("fast", "slow", "worth"), {"send": ("refuse", "fast", "slow")},
    lambda n, rng: {"fast": rng.integers(0, 6, n).astype(np.float64),
                    "slow": rng.integers(0, 6, n).astype(np.float64),
                    "worth": rng.gamma(3.0, 3.0, n)},
    _shorter, _served, 400.0, dict.fromkeys(("fast", "slow"), _NUMBER),
)  # fmt: skip


# ---- weekly offers to customers ---------------------------------------------------------

SEGMENTS = np.array(["budget", "family", "premium"])
OFFERS = "none", "mail", "discount", "gift"
MOST_VISITS = 12
#: How visits are drawn by segment, and by segment and offer; what a visit earns, and offers cost.
APPEAL = np.array([-0.6, 0.0, 0.5])
LURE = np.array([[0.0, 0.2, 1.6, 0.9], [0.0, 0.7, 0.9, 1.3], [0.0, 0.9, 0.4, 1.6]])
BASKET = np.array([16.0, 26.0, 40.0])
CUT = np.array([0.0, 0.0, 0.25, 0.0])  # the share of the basket that an offer takes off
COST = np.array([0.0, 0.3, 0.3, 4.0])


def _more_if_away(state: States, _t: int, rng: np.random.Generator) -> Made:
    """Offer more the longer a customer is away."""
    days = state["recency"] + rng.normal(0, 6, len(state["recency"]))
    return {"offer": np.searchsorted([0.0, 10.0, 20.0], days)}


def _customers(n: int, rng: np.random.Generator) -> States:
    segment = SEGMENTS[rng.choice(3, n, p=[0.5, 0.3, 0.2])]
    visits = rng.integers(0, 4, n).astype(np.float64)
    return _with_weeks(segment, rng.gamma(2.0, 9.0, n), visits)


def _with_weeks(segment: Any, recency: Array, visits: Array) -> States:
    weeks = np.char.add("w", np.minimum(recency // 7, 15).astype(int).astype(str))
    return {"segment": segment, "recency": recency, "visits": visits, "weeks_away": weeks}


def _visited(state: States, made: Made, rng: np.random.Generator) -> tuple[Array, States, Bools]:
    segment, recency, visits = state["segment"], state["recency"], state["visits"]
    kind: Ints = np.asarray(np.searchsorted(SEGMENTS, segment))
    offer = made["offer"]
    score = APPEAL[kind] + LURE[kind, offer] - recency / 14 + 0.9 * np.log1p(visits) / 2
    came = rng.random(len(kind)) < 1 / (1 + np.exp(-score))
    basket = BASKET[kind] * (1 - CUT[offer]) * rng.gamma(4.0, 0.25, len(kind))
    lost = ~came & (rng.random(len(kind)) < 0.25 / (1 + np.exp(3 - recency / 12)))
    later = np.where(came, rng.uniform(0, 7, len(kind)), recency + 7)
    after = _with_weeks(segment, later, np.minimum(visits + came, MOST_VISITS))
    return np.where(came, basket, 0.0) - COST[offer], after, lost


def _retention(name: str, away: str) -> World:
    return World(
        name, 3_000, 26, ("segment", away, "visits"), {"offer": OFFERS}, _customers,
        _more_if_away, _visited, 375.6, {"visits": _NUMBER} | (
            {"recency": _NUMBER} if away == "recency" else {}),
    )  # fmt: skip


RETENTION = _retention("retention", "recency")
#: The same with the days since the last visit as names of weeks.
WEEKS = _retention("retention by weeks", "weeks_away")
