"""What is recommended from logs of practice, beside practice itself and a table of counts.

`python benchmarks/practice.py` makes logs of loggers who act optimally but for a share of random
actions, in the testbed's domains, in random MDPs and at a cliff. It prints for each case the value,
0 for random and 1 for optimal actions and computed exactly, of the logger, of a table's policy, of
the plan of maximum expected utility and of what is recommended: means over logs, the worst
differences of the last from practice and from the table, how often the interval of its honest value
holds the truth, and how often it is not the plan of maximum expected utility. `--seeds 3 -o docs`
writes docs/practice_figures.md.
"""

import argparse
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from rspmn.envs.domains import DOMAINS
from rspmn.envs.mdp import MDP
from rspmn.envs.random_mdp import random_mdp
from rspmn.evaluate import Tabular, true_value
from rspmn.learn import learn_rspmn

#: What is recommended may be so much below practice, or below a table of counts.
AIM = 0.02
ABOUT = """# Logs of practice

Made by `{command}`.

Each log of {episodes:,} episodes was made by the optimal policy of a domain, but for a share of
random actions. The figures are the values of policies, 0 for random and 1 for optimal actions,
computed exactly: of the logger, of a table of counts, of the plan of maximum expected utility
(`safe=False`), and recommended by default. Means over {seeds} logs; the least of what is
recommended less practice, and less the table of the same log, with a star below -{aim}; in how many
logs the 90 % interval of its honest value holds its value; in how many it is not the plan of
maximum expected utility.

"""
WORLDS = [*DOMAINS, "random MDP"]


class Found(NamedTuple):
    """The values of one log's policies."""

    practice: float
    table: float
    plain: float
    recommended: float
    held: bool
    other: bool  # whether the plan of maximum expected utility is not recommended


def world_of(name: str, seed: int) -> tuple[MDP, int]:
    """Return a world and its horizon."""
    world = random_mdp(1_000 + seed) if name == "random MDP" else DOMAINS[name]()
    return world, world.horizon if world.horizon >= 10 else 20


def measure(name: str, share: float, episodes: int, seed: int) -> Found:
    """Learn from a log of the optimal policy with a share of random actions."""
    world, horizon = world_of(name, seed)
    actions = len(world.actions)
    best = np.eye(actions)[world.value_iteration(horizon)[1]]
    logger = (1 - share) * best + share / actions
    log = world.generate(episodes, horizon, seed, "final", logger)
    model, _ = learn_rspmn(log)
    least = world.evaluate(np.full((len(world.states), actions), 1 / actions), horizon)
    most = world.optimum(horizon)

    def scaled(value: float) -> float:
        return (value - least) / (most - least)

    policy, plain = model.policy(horizon), model.policy(horizon, safe=False)
    honest, true = policy.honest_value(), true_value(world, policy, horizon)
    near = 1e-6 * (most - least)  # of rounding
    assert policy.choice is not None
    return Found(
        scaled(world.evaluate(logger, horizon)),
        scaled(world.evaluate(Tabular.fit(log).policy_for(world, horizon), horizon)),
        scaled(true_value(world, plain, horizon)),
        scaled(true),
        honest.low - near <= true <= honest.high + near,
        not policy.choice.is_plain,
    )


def report(worlds: list[str], shares: list[float], episodes: int, seeds: int) -> str:
    """Return a table of means over seeds."""
    lines = [
        "| world | random | practice | table | plain | recommended | least | of table | held "
        "| other |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, share in tqdm([*product(worlds, shares)]):
        found = [measure(name, share, episodes, seed) for seed in range(seeds)]
        of_practice = [one.recommended - one.practice for one in found]
        of_table = [one.recommended - one.table for one in found]
        means = (np.mean([one[k] for one in found]) for k in range(4))
        counts = (sum(one[k] for one in found) for k in (4, 5))
        lines.append(
            f"| {name} | {share:.0%} | {' | '.join(f'{mean:.3f}' for mean in means)} "
            f"| {' | '.join(_least(differences) for differences in (of_practice, of_table))} "
            f"| {' | '.join(f'{count} of {seeds}' for count in counts)} |"
        )
        tqdm.write(lines[-1])
    return "\n".join(lines) + "\n"


def _least(differences: list[float]) -> str:
    worst = min(differences)
    return f"{worst:+.3f}{'' if worst >= -AIM else ' *'}"


def main() -> None:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", nargs="+", default=WORLDS, choices=WORLDS)
    parser.add_argument("--shares", nargs="+", type=float, default=[0.0, 0.02, 0.1, 0.5, 1.0])
    parser.add_argument("--episodes", type=int, default=1_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("-o", "--output", help="a folder for practice_figures.md")
    asked = parser.parse_args()
    found = report(asked.worlds, asked.shares, asked.episodes, asked.seeds)
    if asked.output:
        command = f"python benchmarks/practice.py --seeds {asked.seeds} -o {asked.output}"
        text = ABOUT.format(command=command, episodes=asked.episodes, seeds=asked.seeds, aim=AIM)
        (Path(asked.output) / "practice_figures.md").write_text(text + found, encoding="utf-8")
    else:
        print(found)


if __name__ == "__main__":
    main()
