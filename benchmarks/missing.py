"""Logs that lack values of states, at random: what learned policies and values lose by it.

`python benchmarks/missing.py` prints, by world, episodes and share of missing values, the value of
the learned policy (0 for random, 1 for optimal actions) and the error of the value that the model
promises, as a share of the same difference. Evaluation is exact, with states that are complete.
`--seeds 3 -o docs` writes docs/missing_figures.md.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from time import process_time

import numpy as np
from tqdm import tqdm

from rspmn.data.columns import Column
from rspmn.data.episodes import Episodes
from rspmn.envs.domains import WORLDS
from rspmn.envs.frozen_lake import frozen_lake, random_map
from rspmn.envs.mdp import MDP
from rspmn.envs.sys_admin import sys_admin
from rspmn.evaluate import true_value
from rspmn.learn import learn_rspmn
from rspmn.types import Array

SHARES = 0.0, 0.1, 0.35
EPISODES = 300, 3_000
ABOUT = """# Missing values

Made by `{command}`.

In each log, values of states are missing at random. Policy: the value of the learned policy, 0 for
random and 1 for optimal actions. Error: what the model promises less what is optimal, in the same
unit. Policies act in complete states. Counted: the share of the steps with a known successor that
utilities and successors were estimated from. Means over seeds, with standard deviations, and the
CPU seconds that learning took.

"""


def worlds(seed: int) -> dict[str, MDP]:
    """Return the worlds of a seed."""
    lake = replace(frozen_lake(random_map(5, seed, 0.15)), horizon=20)
    return {
        "lake": lake,
        "GridUniverse": WORLDS["GridUniverse"](),
        "factored": sys_admin(5),
        "Elevators": WORLDS["Elevators"](),
    }


def masked(log: Episodes, share: float, rng: np.random.Generator) -> Episodes:
    """Return a log in which a share of the values of states is missing."""

    def lacking(column: Column) -> Column:
        gone = rng.random(len(column)) < share
        return replace(column, data=np.where(gone, column.absent, column.data))

    names = log.schema.information_sets[0]
    columns = {n: lacking(c) if n in names else c for n, c in log.columns.items()}
    finals = {n: lacking(c) if n in names else c for n, c in log.finals.items()}
    return replace(log, columns=columns, finals=finals)


@dataclass(frozen=True)
class Task:
    """One kind of log."""

    world: str
    episodes: int
    share: float


def measure(task: Task, seed: int) -> Array:
    """Return the value of the policy, the error of its promise, the share counted, and seconds."""
    world = worlds(seed)[task.world]
    horizon = world.horizon
    log = world.generate(task.episodes, horizon, seed, "final")
    log = masked(log, task.share, np.random.default_rng(seed + 1000))
    start = process_time()
    model, info = learn_rspmn(log)
    seconds = process_time() - start
    uniform = np.full((len(world.states), len(world.actions)), 1 / len(world.actions))
    least, most = world.evaluate(uniform, horizon), world.optimum(horizon)
    value = true_value(world, model.policy(horizon), horizon)
    promise = float(model.meu(horizon=horizon))
    known = info.steps - info.steps_unknown
    counted = 1 - (info.steps_left_out + info.steps_doubtful) / known
    span = most - least
    return np.array([(value - least) / span, (promise - most) / span, counted, seconds])


def report(tasks: Sequence[Task], seeds: int) -> str:
    """Return a table of means over seeds."""
    lines = [
        "| world | episodes | missing | policy | error | counted | CPU s |",
        "|---|---|---|---|---|---|---|",
    ]
    for task in tqdm(tasks):
        found = np.array([measure(task, seed) for seed in range(seeds)])
        mean, spread = found.mean(axis=0), found.std(axis=0)
        lines.append(
            f"| {task.world} | {task.episodes:,} | {task.share:.0%} | {mean[0]:.3f} ± "
            f"{spread[0]:.3f} | {mean[1]:+.3f} ± {spread[1]:.3f} | {mean[2]:.0%} | {mean[3]:.2f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--worlds", nargs="+", default=list(worlds(0)))
    parser.add_argument("--episodes", nargs="+", type=int, default=list(EPISODES))
    parser.add_argument("--shares", nargs="+", type=float, default=list(SHARES))
    parser.add_argument("-o", "--output", help="a folder for missing_figures.md")
    asked = parser.parse_args()
    tasks = [Task(*each) for each in product(asked.worlds, asked.episodes, asked.shares)]
    found = report(tasks, asked.seeds)
    if asked.output:
        command = f"python benchmarks/missing.py --seeds {asked.seeds} -o {asked.output}"
        (Path(asked.output) / "missing_figures.md").write_text(
            ABOUT.format(command=command) + found
        )
    else:
        print(found)


if __name__ == "__main__":
    main()
