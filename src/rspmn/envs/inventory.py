"""Inventory: how much to order, with a stock that may be any number and a demand that varies.

Not one of the paper's domains. What follows a step is spread over many numbers, and depends on the
stock only in that demand is taken from it.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import product

import numpy as np

from rspmn.envs.explore import explore
from rspmn.envs.mdp import MDP
from rspmn.schema import Schema

#: The mean demand of a day of the week, and at the weekend; a promotion multiplies it.
WEEKDAY, WEEKEND, PROMOTED = 9.0, 18.0, 1.6
#: The chance of a promotion. Demand is taken to be at most this.
PROMOTION, MOST_DEMAND = 0.2, 50
#: What a sale earns; what a lost sale, a unit in stock, an order and an ordered unit cost.
SALE, LOST, STOCK, ORDER, UNIT = 4.0, 3.0, 0.2, 8.0, 1.5
#: Where practice orders; how much; and how often it orders anything.
LOW, USUAL, ANYTHING = 15, 20, 0.3


@lru_cache(maxsize=4)
def inventory(most: int = 60, units: int = 10) -> MDP:
    """Return the world: each day up to three lots of `units` are ordered, and arrive overnight.

    Demand has a Poisson distribution with a mean of 9, or 18 at the weekend, and 1.6 times that
    with a promotion. A unit sold earns 4, a sale that is lost costs 3. Stock costs .2 a day and
    unit, an order 8 and 1.5 for each unit. No more than `most` are kept. The log is of a shop
    that orders 20 below a stock of 15 and, three times in ten, anything.

    >>> world = inventory(most=20)
    >>> len(world.states), len(world.actions)  # stock, day and promotion; lots
    (294, 4)
    """
    schema = Schema(
        [["stock", "day", "promotion"], ["order"]], ["order"], "reward",
        {"stock": "integer", "day": "integer", "promotion": "boolean", "order": "integer"}
        | {"reward": "continuous"},
    )  # fmt: skip
    orders = [(units * lots,) for lots in range(4)]

    def outcomes(
        state: tuple[int, int, bool], action: tuple[int]
    ) -> Iterator[tuple[float, tuple[int, int, bool], float]]:
        (stock, day, promoted), (order,) = state, action
        mean = (WEEKEND if day >= 5 else WEEKDAY) * (PROMOTED if promoted else 1.0)
        cost = ORDER + UNIT * order if order else 0.0
        for demand, chance in enumerate(_demand(mean)):
            sold = min(demand, stock)
            left = stock - sold
            earned = SALE * sold - LOST * (demand - sold) - STOCK * left - cost
            for after, share in ((True, PROMOTION), (False, 1 - PROMOTION)):
                then = (min(left + order, most), (day + 1) % 7, after)
                yield chance * share, then, round(earned, 9)

    first = [*product(range(min(40, most)), range(7), (False, True))]
    start = {s: (PROMOTION if s[2] else 1 - PROMOTION) * 2 / len(first) for s in first}
    found = explore("Inventory", schema, start, orders, outcomes, episodes=1_000, horizon=28)
    low = np.array(found.states, dtype=np.int64)[:, 0] < LOW
    behaviour = np.full((len(found.states), len(orders)), ANYTHING / len(orders))
    usual = np.where(low, orders.index((USUAL,)) if (USUAL,) in orders else 1, 0)
    behaviour[np.arange(len(usual)), usual] += 1 - ANYTHING
    return replace(found, behaviour=behaviour)


def _demand(mean: float) -> list[float]:
    """Return how likely each demand is, up to the most."""
    factors = np.append(1.0, mean / np.arange(1, MOST_DEMAND + 1))
    chances = np.cumprod(factors)
    return [float(chance) for chance in chances / chances.sum()]
