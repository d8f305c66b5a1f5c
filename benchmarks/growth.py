"""How the time to learn grows: with episodes, and with states. Run it with `make bench`.

`python benchmarks/growth.py docs/growth.svg` also draws it.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from statistics import median

import numpy as np

from rspmn import Windows
from rspmn.envs.frozen_lake import frozen_lake, random_map
from rspmn.learn import learn_rspmn

EPISODES = [1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000]
SIDES = [4, 8, 16, 32, 64]


def timed(run: Callable[[], object]) -> float:
    """Return the median of three runs."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return median(times)


def with_episodes(several: Sequence[int] = EPISODES) -> list[tuple[int, int, float, float]]:
    """Return episodes, distinct windows, and seconds for windows and for what comes after."""
    rows = []
    lake = frozen_lake()
    for episodes in several:
        log = lake.generate(episodes, 8, 0, "final")
        windows = Windows.from_episodes(log)
        group = timed(lambda log=log: Windows.from_episodes(log))  # type: ignore[misc]
        learn = timed(lambda windows=windows: learn_rspmn(windows))  # type: ignore[misc]
        rows.append((episodes, len(windows), group, learn))
        print(
            f"{episodes:8} episodes: {len(windows):6} distinct windows, grouped in "
            f"{1e3 * group:6.1f} ms, learned in {1e3 * learn:6.1f} ms"
        )
    return rows


def with_states(sides: Sequence[int] = SIDES) -> list[tuple[int, int, float]]:
    """Return cells, distinct windows, and seconds to learn from them."""
    rows = []
    for side in sides:
        lake = frozen_lake(random_map(side, np.random.default_rng(side)), random_starts=True)
        log = lake.generate(
            100 * side * side // 4, 40, 0, "final"
        )  # a thousand steps for each cell
        windows = Windows.from_episodes(log)
        learn = timed(lambda windows=windows: learn_rspmn(windows))  # type: ignore[misc]
        rows.append((side * side, len(windows), learn))
        print(
            f"{side * side:5} cells: {len(windows):6} distinct windows, learned in {learn:7.3f} s, "
            f"{1e6 * learn / len(windows):.0f} µs for each"
        )
    return rows


def draw(
    path: str, episodes: list[tuple[int, int, float, float]], states: list[tuple[int, int, float]]
) -> None:
    """Draw both."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "rspmn"
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    number = [row[0] for row in episodes]
    left.loglog(number, [row[2] for row in episodes], "o-", label="windows (group-by)")
    left.loglog(number, [row[3] for row in episodes], "s-", label="learning after it")
    left.set(xlabel="episodes (FrozenLake 4×4, 8 steps)", ylabel="seconds")
    left.legend()
    windows = np.array([row[1] for row in states])
    seconds = np.array([row[2] for row in states])
    right.loglog(windows, seconds, "s-", label="learning")
    right.loglog(windows, seconds[0] * windows / windows[0], "k:", label="linear")
    for cells, at, took in states:
        right.annotate(f"{cells} cells", (at, took), (8, -6), textcoords="offset points")
    right.margins(x=0.3, y=0.1)
    right.set(xlabel="distinct windows (maps of 16 to 4096 cells)", ylabel="seconds")
    right.legend()
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", nargs="?", help="a file to draw it to")
    parser.add_argument("--episodes", type=int, nargs="+", default=EPISODES)
    parser.add_argument("--sides", type=int, nargs="+", default=SIDES)
    asked = parser.parse_args()
    found = with_episodes(asked.episodes), with_states(asked.sides)
    if asked.picture:
        draw(asked.picture, *found)
