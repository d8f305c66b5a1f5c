"""Worlds whose states are numbers, each with a decent logger who errs: simulators in array code.

A world has its variables, a horizon, and functions from arrays of states to arrays: how episodes
begin, what the logger does, and what follows. `log_of` makes a log, `earned` values a policy or
practice by simulation.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rspmn.infer.policy import Policy
from rspmn.schema import Kind, Schema
from rspmn.types import Array, Bools, Ints

States = dict[str, Array]


@dataclass(frozen=True)
class World:
    """A world of numbers; states and actions are columns by name."""

    name: str
    horizon: int
    state: tuple[str, ...]
    decisions: dict[str, tuple[Any, ...]]  # the values of each
    begin: Callable[[int, np.random.Generator], States]
    #: Codes of all decisions [n] from states, the time step, and a generator: what the logger does.
    usual: Callable[[States, int, np.random.Generator], dict[str, Ints]]
    #: Rewards, next states, and whether episodes end, from states and codes of decisions.
    step: Callable[[States, dict[str, Ints], np.random.Generator], tuple[Array, States, Bools]]
    kinds: dict[str, Kind] = field(default_factory=dict)

    @property
    def schema(self) -> Schema:
        """The schema of its logs."""
        order = [list(self.state), *([name] for name in self.decisions)]
        return Schema(order, list(self.decisions), "reward", self.kinds)


def log_of(world: World, episodes: int, seed: int) -> dict[str, list[Any]]:
    """Return a log of the world's logger."""
    names = ["episode", "time", *world.state, *world.decisions, "reward", "over"]
    columns: dict[str, list[Any]] = {name: [] for name in names}

    def keep(t: int, here: Ints, state: States, made: dict[str, Ints], gain: Array, over: Bools
             ) -> None:  # fmt: skip
        values = {n: np.array(v, dtype=object)[made[n]] for n, v in world.decisions.items()}
        row = {"episode": here, "time": np.full(len(here), t), **state, **values}
        row |= {"reward": gain, "over": over}
        for name in names:
            columns[name] += row[name].tolist()

    _simulated(world, world.usual, episodes, np.random.default_rng(seed), keep)
    return columns


def earned(world: World, policy: Policy | None, episodes: int = 4_000, seed: int = 10**6) -> float:
    """Return the mean return of a policy, or of practice."""
    rng = np.random.default_rng(seed)

    def by_policy(state: States, t: int, _: np.random.Generator) -> dict[str, Ints]:
        assert policy is not None
        made = policy.act_many(state, t)
        made = made if isinstance(made, dict) else {next(iter(world.decisions)): made}
        return {
            name: np.array([values.index(x) for x in np.asarray(made[name]).tolist()])
            for name, values in world.decisions.items()
        }

    choose = world.usual if policy is None else by_policy
    return _simulated(world, choose, episodes, rng, None)


def _simulated(
    world: World, choose: Callable[[States, int, np.random.Generator], dict[str, Ints]],
    episodes: int, rng: np.random.Generator, keep: Callable[..., None] | None,
) -> float:  # fmt: skip
    state, here, total = world.begin(episodes, rng), np.arange(episodes), 0.0
    for t in range(world.horizon):
        made = choose(state, t, rng)
        gain, after, over = world.step(state, made, rng)
        total += float(gain.sum())
        if keep is not None:
            keep(t, here, state, made, gain, over)
        here, state = here[~over], {name: x[~over] for name, x in after.items()}
        if not len(here):
            break
    return total / episodes


def _either(share: float, often: Ints, options: int, rng: np.random.Generator) -> Ints:
    """Return what is usual, but with some probability any of the options."""
    return np.where(rng.random(len(often)) < share, rng.integers(options, size=len(often)), often)


# ---- two products, ordered with a lead time -------------------------------------------

LOTS = 0, 4, 8, 12


def _order_up_to(state: States, _t: int, rng: np.random.Generator) -> dict[str, Ints]:
    made = {}
    for product, level in (("a", 9), ("b", 6)):
        short = level - state[f"stock_{product}"] - state[f"coming_{product}"]
        made[f"order_{product}"] = _either(
            0.3, np.clip(np.rint(short / 4), 0, 3).astype(int), 4, rng
        )
    return made


def _sold(
    state: States, made: dict[str, Ints], rng: np.random.Generator
) -> tuple[Array, States, Bools]:
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
    "inventory", 30, _STOCKS, {"order_a": LOTS, "order_b": LOTS},
    lambda n, rng: {name: rng.integers(0, 9, n).astype(float) * (name[0] == "s")
                    for name in _STOCKS},
    _order_up_to, _sold, dict.fromkeys(_STOCKS, _NUMBER),
)  # fmt: skip


# ---- jobs that are admitted to one of two queues, or refused --------------------------


def _shorter(state: States, _t: int, rng: np.random.Generator) -> dict[str, Ints]:
    short = np.where(state["fast"] <= 2 * state["slow"], 1, 2)
    full = state["fast"] + state["slow"] > 14
    return {"send": _either(0.3, np.where(full, 0, short).astype(int), 3, rng)}


def _served(
    state: States, made: dict[str, Ints], rng: np.random.Generator
) -> tuple[Array, States, Bools]:
    send, fast, slow = made["send"], state["fast"], state["slow"]
    gain = state["worth"] * (send > 0) - 0.5 * (fast + slow) - 0.04 * (fast + slow) ** 2
    fast = np.maximum(fast + (send == 1) - rng.poisson(0.7, len(fast)), 0)
    slow = np.maximum(slow + (send == 2) - rng.poisson(0.35, len(slow)), 0)
    worth = rng.gamma(3.0, 3.0, len(fast))
    return gain, {"fast": fast, "slow": slow, "worth": worth}, np.zeros(len(fast), dtype=bool)


QUEUE = World(
    "queue", 60, ("fast", "slow", "worth"), {"send": ("refuse", "fast", "slow")},
    lambda n, rng: {"fast": rng.integers(0, 6, n).astype(np.float64),
                    "slow": rng.integers(0, 6, n).astype(np.float64),
                    "worth": rng.gamma(3.0, 3.0, n)},
    _shorter, _served, dict.fromkeys(("fast", "slow"), _NUMBER),
)  # fmt: skip


# ---- glucose, which meals raise and doses of insulin lower ----------------------------

DOSES = 0, 1, 2, 4


def _by_scale(state: States, _t: int, rng: np.random.Generator) -> dict[str, Ints]:
    often = np.searchsorted([140.0, 180.0, 240.0], state["glucose"] + rng.normal(0, 15, len(
        state["glucose"])))  # fmt: skip
    return {"dose": _either(0.25, often, 4, rng)}


def _metabolised(
    state: States, made: dict[str, Ints], rng: np.random.Generator
) -> tuple[Array, States, Bools]:
    glucose, active, meal = state["glucose"], state["active"], state["meal"]
    active = active * 0.6 + np.array(DOSES, dtype=float)[made["dose"]]
    change = 0.9 * meal - 14 * active + 0.1 * (130 - glucose) + rng.normal(0, 8, len(glucose))
    glucose = np.clip(glucose + change, 30, 400)
    gain = 1 - np.abs(glucose - 120) / 60 - 4.0 * (glucose < 70)
    over = (glucose < 45) | (glucose > 390)
    eaten = np.where(rng.random(len(glucose)) < 0.35, rng.gamma(4.0, 12.0, len(glucose)), 0.0)
    return gain - 25 * over, {"glucose": glucose, "active": active, "meal": eaten}, over


GLUCOSE = World(
    "glucose", 40, ("glucose", "active", "meal"), {"dose": DOSES},
    lambda n, rng: {"glucose": rng.normal(150, 30, n), "active": np.zeros(n), "meal": np.zeros(n)},
    _by_scale, _metabolised,
)  # fmt: skip

WORLDS = {world.name: world for world in (INVENTORY, QUEUE, GLUCOSE)}
