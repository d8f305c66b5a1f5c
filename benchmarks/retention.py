"""Retention: weekly offers to customers, whose days since the last visit jump back when they visit.

`python benchmarks/retention.py` learns from logs of 3,000 customers and compares the honest value
of the policy with its true value, and that with the optimum. `--as integer` logs days since the
last visit as whole days that are a number, `--as binned` as weeks; `--seeds 20 --first 0`.
"""

import argparse
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np

import rspmn
from rspmn.infer.policy import Policy
from rspmn.schema import Kind, Schema
from rspmn.types import Array, Ints

SEGMENTS = "budget", "family", "premium"
OFFERS = "none", "mail", "discount", "gift"
WEEKS, MOST_VISITS, CUSTOMERS = 26, 12, 3_000
#: How visits are drawn by segment, and by segment and offer; what a visit earns, and offers cost.
APPEAL = np.array([-0.6, 0.0, 0.5])
LURE = np.array([[0.0, 0.2, 1.6, 0.9], [0.0, 0.7, 0.9, 1.3], [0.0, 0.9, 0.4, 1.6]])
BASKET = np.array([16.0, 26.0, 40.0])
CUT = np.array([0.0, 0.0, 0.25, 0.0])  # the share of the basket that an offer takes off
COST = np.array([0.0, 0.3, 0.3, 4.0])
#: The finest grid of days on which values are computed, by linear interpolation.
DAYS = np.arange(0.0, 260.0, 0.5)
NAMES = {"continuous": "recency", "integer": "recency", "binned": "weeks_away"}


def visits(segment: Ints, recency: Array, visited: Array, offer: Ints) -> Array:
    """Return the probability that customers visit within the week."""
    score = APPEAL[segment] + LURE[segment, offer] - recency / 14 + 0.9 * np.log1p(visited) / 2
    return np.asarray(1 / (1 + np.exp(-score)))


def leaves(recency: Array) -> Array:
    """Return the probability that customers who do not visit are lost."""
    return np.asarray(0.25 / (1 + np.exp(3 - recency / 12)))


def earns(segment: Ints, offer: Ints) -> Array:
    """Return what a visit earns on average."""
    return np.asarray(BASKET[segment] * (1 - CUT[offer]))


def practice(recency: Array, rng: np.random.Generator) -> Ints:
    """Offer more the longer a customer is away, and in a third of the weeks anything."""
    usual = np.searchsorted([10.0, 24.0, 45.0], recency + rng.normal(0, 6, len(recency)))
    anything = rng.integers(len(OFFERS), size=len(recency))
    return np.asarray(np.where(rng.random(len(recency)) < 1 / 3, anything, usual))


def began(customers: int, rng: np.random.Generator) -> tuple[Ints, Array, Array]:
    """Return segments, days since the last visit, and visits at first."""
    segment = rng.choice(3, customers, p=[0.5, 0.3, 0.2])
    return segment, rng.gamma(2.0, 9.0, customers), rng.integers(0, 4, customers).astype(np.float64)


def log_of(
    customers: int, seed: int, kind: str = "continuous"
) -> tuple[dict[str, list[Any]], Schema]:
    """Return a log, and its schema."""
    rng = np.random.default_rng(seed)
    segment, recency, visited = began(customers, rng)
    here = np.arange(customers)
    state = ["segment", NAMES[kind], "visits"]
    names = ["episode", "time", *state, "offer", "earned", "lost"]
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for week in range(WEEKS):
        offer = practice(recency, rng)
        came = rng.random(len(here)) < visits(segment, recency, visited, offer)
        basket = earns(segment, offer) * rng.gamma(4.0, 0.25, len(here))
        earned = np.where(came, basket, 0.0) - COST[offer]
        lost = ~came & (rng.random(len(here)) < leaves(recency))
        rows = (
            here, np.full(len(here), week), np.array(SEGMENTS)[segment], shown(recency, kind),
            visited, np.array(OFFERS)[offer], earned, lost,
        )  # fmt: skip
        for column, values in zip(columns.values(), rows, strict=True):
            column += values.tolist()
        recency = np.where(came, rng.uniform(0, 7, len(here)), recency + 7)
        visited = np.minimum(visited + came, MOST_VISITS)
        here, segment = here[~lost], segment[~lost]
        recency, visited = recency[~lost], visited[~lost]
    kinds = {"visits": Kind.CONTINUOUS} | ({} if kind == "binned" else {"recency": Kind.CONTINUOUS})
    return columns, Schema([state, ["offer"]], ["offer"], "earned", kinds)


def shown(recency: Array, kind: str) -> Any:  # [n], numbers or names of weeks
    """Return days since the last visit as a log has them."""
    if kind == "continuous":
        return recency
    if kind == "integer":
        return np.floor(recency)
    return np.char.add("w", np.minimum(recency // 7, 15).astype(int).astype(str))


# ---- what policies are worth ---------------------------------------------------------


def value_of(choose: Callable[[dict[str, Array], Array, int], Ints]) -> float:
    """Return what a choice of offers is worth; `choose` has states, values of offers, the week."""
    size = len(SEGMENTS), len(DAYS), MOST_VISITS + 1
    segment, day, visited = (x.ravel() for x in np.indices(size))
    recency, after = DAYS[day], np.zeros(size)
    shape = (len(segment), len(OFFERS))
    offers = np.tile(np.arange(len(OFFERS)), (shape[0], 1))
    come = visits(segment[:, None], recency[:, None], visited[:, None], offers)
    gain = come * earns(segment[:, None], offers) - COST
    later = np.minimum(day + 14, len(DAYS) - 1)
    fresh = np.minimum(visited + 1, MOST_VISITS)
    for week in reversed(range(WEEKS)):
        back = after[:, :15].copy()
        back[:, [0, 14]] /= 2
        came, stays = back.sum(axis=1) / 14, after[segment, later, visited] * (1 - leaves(recency))
        worth = gain + come * came[segment, fresh][:, None] + (1 - come) * stays[:, None]
        made = choose({"segment": segment, "recency": recency, "visits": visited}, worth, week)
        after = worth[np.arange(shape[0]), made].reshape(size)
    first_segment, first_recency, first_visited = began(400_000, np.random.default_rng(1))
    at = np.minimum(first_recency * 2, len(DAYS) - 2)
    low = at.astype(int)
    v = first_visited.astype(int)
    part = at - low
    mean = (1 - part) * after[first_segment, low, v] + part * after[first_segment, low + 1, v]
    return float(mean.mean())


def optimum() -> float:
    """Return what the best choices are worth."""
    return value_of(lambda _states, worth, _week: worth.argmax(axis=1))


def true_value(policy: Policy, kind: str) -> float:
    """Return what a policy is worth."""

    def choose(states: dict[str, Array], _worth: Array, week: int) -> Ints:
        shown_states = {
            "segment": [SEGMENTS[k] for k in states["segment"]],
            NAMES[kind]: shown(states["recency"], kind).tolist(),
            "visits": states["visits"].astype(float).tolist(),
        }
        made = np.asarray(policy.act_many(shown_states, week))
        return np.array([OFFERS.index(x) for x in made])

    return value_of(choose)


def main() -> None:
    """Print a line for each seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--as", dest="kind", choices=[*NAMES], default="continuous")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    best = optimum()
    print(f"optimum {best:.1f}", flush=True)
    for seed in range(options.first, options.first + options.seeds):
        began_at = process_time()
        log, schema = log_of(CUSTOMERS, seed, options.kind)
        model, info = rspmn.learn_rspmn(rspmn.windows(log, schema, terminated="lost"))
        learned = process_time() - began_at
        policy = model.policy(WEEKS)
        found = policy.honest_value()
        true = true_value(policy, options.kind)
        held = found.low <= true <= found.high
        print(
            f"seed {seed} truth {true:.1f} point {found.point:.1f} low {found.low:.1f} "
            f"high {found.high:.1f} promise {found.promise:.1f} held {held} "
            f"optimum {true / best:.3f} learned {learned:.1f} s, "
            f"knots {[len(k) for k in info.numbers.knots.values()]}",
            flush=True,
        )


if __name__ == "__main__":
    main()
