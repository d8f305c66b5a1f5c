"""How fast LearnRSPMN and its queries are, as ratios within one run. Run it with `make bench`."""

import argparse
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn import Episodes, Windows
from rspmn.data.keys import column_keys, join, joint_key
from rspmn.envs.domains import DOMAINS
from rspmn.envs.mdp import MDP
from rspmn.learn import LearnConfig, learn_rspmn


def timed(run: Callable[[], object], repeats: int = 7) -> float:
    """Return the median CPU time of some runs, after one that does not count."""
    run()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return median(times)


def _keys(episodes: Episodes, names: Sequence[str]) -> NDArray[Any]:
    return join([column_keys(episodes.columns[name]) for name in names]).codes


def window_keys(episodes: Episodes) -> NDArray[np.int64]:
    """Return the (x, d, u, x') rows of a log, coded as one integer each."""
    schema = episodes.schema
    names = schema.information_sets[0]
    state = np.unique(_keys(episodes, names), return_inverse=True)[1]
    after = np.append(state[1:], 0) + 1
    after[episodes.offsets[1:] - 1] = 0
    rest = _keys(episodes, [n for n in schema.variables if n not in names])
    sizes = int(state.max()) + 1, int(rest.max()) + 1, int(after.max()) + 1
    return joint_key(list(zip((state, rest, after), sizes, strict=True)))


def learning(domains: list[MDP]) -> None:
    """Time all from the episodes in memory to the policy, against one np.unique of the rows.

    And against the same with futures by counts. How fast numpy sorts depends on the processor: with
    AVX-512 on some it takes six times as long as with AVX2, which
    `NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL"` makes it use.
    """
    totals = np.zeros(3)
    by_counts = LearnConfig(successors="counts")
    for mdp in domains:
        log = mdp.generate(mdp.episodes, mdp.horizon, 0, "final")
        keys = window_keys(log)
        unique = timed(lambda keys=keys: np.unique(keys, return_counts=True))  # type: ignore[misc]
        learn = timed(lambda log=log, mdp=mdp: learn_rspmn(log)[0].policy(mdp.horizon))  # type: ignore[misc]
        counted = timed(
            lambda log=log, mdp=mdp: learn_rspmn(log, by_counts)[0].policy(mdp.horizon)  # type: ignore[misc]
        )
        windows = timed(lambda log=log: Windows.from_episodes(log))  # type: ignore[misc]
        totals += unique, learn, counted
        print(
            f"{mdp.name:16} {log.num_steps:8} steps: unique {1e3 * unique:5.1f} ms, "
            f"windows {1e3 * windows:5.1f} ms, all {1e3 * learn:6.1f} ms, {learn / unique:.1f}×; "
            f"by counts {1e3 * counted:6.1f} ms, factored {learn / counted:.2f}×"
        )
    print(f"  together {totals[1] / totals[0]:.1f} (target 10; on none above 15)")
    print(f"  factored futures together {totals[1] / totals[2]:.2f} × counts (target < 2)")


def queries(domains: Mapping[str, MDP]) -> None:
    """Time MEU over long horizons, single decisions, and a million states at once."""
    lake = domains["FrozenLake"]
    model, _ = learn_rspmn(lake.generate(lake.episodes, lake.horizon, 0, "final"))
    print(f"FrozenLake MEU, H=300: {1e3 * timed(lambda: model.meu(horizon=300)):.2f} ms (< 5)")
    policy = model.policy(100)
    states = [{"cell": int(cell)} for cell in (0, 1, 2, 3, 4, 6, 8, 9, 10, 13, 14)] * 20
    one = timed(lambda: [policy.act(s, t % 100) for t, s in enumerate(states)]) / len(states)
    print(f"FrozenLake, one decision: {1e6 * one:.0f} µs (< 100)")
    many = {"cell": np.random.default_rng(0).choice([0, 1, 2, 3, 4, 6, 8, 9, 10], 1_000_000)}
    print(f"FrozenLake, a million states: {timed(lambda: policy.act_many(many)):.3f} s (< 1)")
    taxi = domains["Taxi"]
    model, _ = learn_rspmn(taxi.generate(taxi.episodes, taxi.horizon, 0, "final"))
    print(f"Taxi MEU, T=50: {1e3 * timed(lambda: model.meu(horizon=50)):.2f} ms (< 20)")
    decide = model.policy(50)
    names = taxi.schema.state_variables
    known = [dict(zip(names, s, strict=True)) for s in taxi.states if s[2] != s[3]][:200]
    one = timed(lambda: [decide.act(s, t % 50) for t, s in enumerate(known)]) / len(known)
    print(f"Taxi, one decision: {1e6 * one:.0f} µs (< 100)")
    rows = np.random.default_rng(0).integers(0, len(known), 1_000_000)
    table = {n: np.array([s[n] for s in known])[rows] for n in names}
    print(f"Taxi, a million states: {timed(lambda: decide.act_many(table), 3):.3f} s (< 1)")


def memory(domains: Mapping[str, MDP]) -> None:
    """Print what learning needs besides the windows."""
    for name in ("Taxi", "Elevators"):
        mdp = domains[name]
        windows = Windows.from_episodes(mdp.generate(mdp.episodes, mdp.horizon, 0, "final"))
        columns = [*windows.columns.values(), *windows.next_columns.values()]
        size = sum(column.data.nbytes for column in columns) + 17 * len(windows)
        learn_rspmn(windows)
        tracemalloc.start()
        learn_rspmn(windows)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        limit = 3 * size + 200_000_000
        print(f"{name}: peak {peak / 1e6:.0f} MB, allowed {limit / 1e6:.0f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, help="of each log; default: those of the paper")
    episodes = parser.parse_args().episodes
    made = {name: make() for name, make in DOMAINS.items()}
    made = {n: replace(mdp, episodes=episodes or mdp.episodes) for n, mdp in made.items()}
    learning([*made.values()])
    queries(made)
    memory(made)
