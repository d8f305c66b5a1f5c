"""ICU-Sepsis: policies from clinicians' logs of a model of 716 states, beside SPIBB and tables.

`python benchmarks/icu.py --stays 5000 20000` makes logs of the clinicians' policy, or of random
actions, and prints survival within 100 steps, exactly: of the logger, of a table of counts over
actions with 50 steps or more, of SPIBB (`Π_b`, 50 steps), and of what is recommended, with its
honest value. It needs the package icu-sepsis.
"""

import argparse
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from rspmn import learn_rspmn
from rspmn.envs.mdp import MDP
from rspmn.evaluate import true_value
from rspmn.schema import Schema
from rspmn.types import Array

#: The horizon, and the steps that an action of a table and of SPIBB needs.
HORIZON, ENOUGH = 100, 50
#: So many updates of tables: enough for values to settle.
UPDATES = 300


def sepsis() -> tuple[MDP, Array]:
    """Return the world, and the clinicians' policy [states, actions]."""
    found = find_spec("icu_sepsis")
    if found is None or found.origin is None:
        raise SystemExit("no icu_sepsis: pip install icu-sepsis")
    tables = np.load(Path(found.origin).parent / "envs" / "assets" / "dynamics.npz")
    moves, pays = tables["tx_mat"], tables["r_mat"]
    states, actions, _ = moves.shape
    over = np.arange(states) >= states - 3
    expert, any_ = tables["expert_policy"], np.full((states, actions), 1 / actions)
    usual = np.where(expert.sum(axis=1, keepdims=True) > 0, expert, any_)
    moves[over] = np.eye(states)[over][:, None, :]
    pays[over] = 0.0
    moves = moves.reshape(-1, states)
    row, successor = np.nonzero(moves)
    share = moves[row, successor]
    share /= np.bincount(row, share)[row]
    kinds = {"s": "categorical", "a": "categorical", "u": "continuous"}
    world = MDP(
        "ICU-Sepsis", Schema([["s"], ["a"]], ["a"], "u", kinds),
        tuple((f"s{s}",) for s in range(states)), tuple((f"a{a}",) for a in range(actions)),
        np.searchsorted(row, np.arange(len(moves) + 1)), successor, share,
        pays.reshape(-1, states)[row, successor], tables["d_0"] / tables["d_0"].sum(), over,
        5_000, HORIZON,
    )  # fmt: skip
    return world, usual / usual.sum(axis=1, keepdims=True)


def counted(world: MDP, columns: dict[str, list[Any]]) -> tuple[Array, Array]:
    """Return counts [states, actions, states], and mean rewards [states, actions, states]."""
    place = {state: k for k, (state,) in enumerate(world.states)}
    code = {action: k for k, (action,) in enumerate(world.actions)}
    shape = len(place), len(code), len(place)
    counts, sums = np.zeros(shape), np.zeros(shape)
    at, episodes = np.array([place[s] for s in columns["s"]]), np.array(columns["episode"])
    over, goes_on = np.array(columns["terminated"]), np.diff(episodes, append=-1) == 0
    after = np.where(over, len(place) - 1, np.append(at[1:], 0))  # the last state is the end
    rows = np.flatnonzero(goes_on | over)
    made = np.array([code[columns["a"][k]] for k in rows])
    where = at[rows], made, after[rows]
    np.add.at(counts, where, 1.0)
    np.add.at(sums, where, np.array([columns["u"][k] for k in rows], dtype=float))
    return counts, sums / np.maximum(counts, 1)


def tabled(counts: Array, pays: Array, spibb: bool) -> Array:  # [states, actions]
    """Return the policy of a table over actions with enough steps; SPIBB keeps the rest."""
    steps = counts.sum(axis=2)
    usual = steps / np.maximum(steps.sum(axis=1, keepdims=True), 1)
    chance = counts / np.maximum(steps, 1)[..., None]
    earned, known = (chance * pays).sum(axis=2), steps >= ENOUGH
    most = steps == steps.max(axis=1, keepdims=True)
    allowed = known | (most & ~known.any(axis=1, keepdims=True))
    kept = np.where(known, 0.0, usual) if spibb else np.zeros_like(usual)
    free = np.where(known.any(axis=1), 1 - kept.sum(axis=1), 0.0 if spibb else 1.0)
    values, policy = np.zeros(len(steps)), usual
    for _ in range(UPDATES):
        worth = earned + chance @ values
        best = np.where(known if spibb else allowed, worth, -np.inf).argmax(axis=1)
        policy = kept + free[:, None] * np.eye(steps.shape[1])[best]
        values = (policy * worth).sum(axis=1)
    unknown = policy.sum(axis=1) <= 0
    policy[unknown] = 1 / steps.shape[1]
    return np.asarray(policy / policy.sum(axis=1, keepdims=True))


def main() -> None:
    """Print a line for each log."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stays", type=int, nargs="+", default=[5_000, 20_000])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--random", action="store_true", help="a logger of random actions")
    asked = parser.parse_args()
    world, expert = sepsis()
    logger = np.full_like(expert, 1 / expert.shape[1]) if asked.random else expert
    print(
        f"practice {world.evaluate(logger, HORIZON):.3f}, optimum {world.optimum(HORIZON):.3f}",
        flush=True,
    )
    for stays in asked.stays:
        for seed in range(asked.seeds):
            log = world.generate(stays, HORIZON, seed, "final", logger)
            counts, pays = counted(world, log.to_long())
            table, spibb = (
                world.evaluate(tabled(counts, pays, kind), HORIZON) for kind in (False, True)
            )
            began = process_time()
            model, _ = learn_rspmn(log)
            learned = process_time() - began
            plain, policy = model.policy(HORIZON, safe=False), model.policy(HORIZON)
            planned = process_time() - began - learned
            honest, true = policy.honest_value(), true_value(world, policy, HORIZON)
            assert policy.choice is not None
            print(
                f"{stays} stays, seed {seed}: table {table:.3f} SPIBB {spibb:.3f} plain "
                f"{true_value(world, plain, HORIZON):.3f} recommended {true:.3f}, honest "
                f"{honest.point:.3f} ({honest.low:.3f} to {honest.high:.3f}) held "
                f"{honest.low <= true <= honest.high}, plain {policy.choice.is_plain}; learned "
                f"{learned:.1f} s, policies {planned:.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
