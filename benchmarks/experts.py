"""Policies learned from logs of near-optimal loggers, beside a table of counts and practice.

`python benchmarks/experts.py` prints, for each domain and share of random actions, the value of the
learned policy, of a table's and of the logger's, 0 for random and 1 for optimal actions, computed
exactly: means over seeds, the worst difference from the table, and what was set aside. A star marks
logs from which the learned policy is more than 0.02 below the table's. `--seeds 3 -o docs` writes
docs/experts_figures.md.
"""

import argparse
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from rspmn.envs.domains import DOMAINS
from rspmn.evaluate import Tabular, true_value
from rspmn.learn import learn_rspmn

#: The learned policy may be so much below the table's.
AIM = 0.02
ABOUT = """# Logs of experts

Made by `{command}`.

Each log of {episodes:,} episodes was made by the optimal policy of a domain, but for a share of
random actions. The figures are the values of policies, 0 for random and 1 for optimal actions,
computed exactly: of the logger, of a table of counts, and learned with default settings. Means
over {seeds} logs, the worst difference from the table, and the variables that were set aside. A
star marks a difference below -{aim}.

"""


class Found(NamedTuple):
    """The values of one log's policies, and the variables that were set aside."""

    practice: float
    table: float
    learned: float
    aside: tuple[str, ...]


def measure(domain: str, share: float, episodes: int, seed: int) -> Found:
    """Learn from a log of the optimal policy with a share of random actions."""
    world = DOMAINS[domain]()
    horizon, actions = world.horizon, len(world.actions)
    best = np.eye(actions)[world.value_iteration(horizon)[1]]
    logger = (1 - share) * best + share / actions
    log = world.generate(episodes, horizon, seed, "final", logger)
    model, info = learn_rspmn(log)
    least = world.evaluate(np.full((len(world.states), actions), 1 / actions), horizon)
    most = world.optimum(horizon)

    def scaled(value: float) -> float:
        return (value - least) / (most - least)

    table = Tabular.fit(log).policy_for(world, horizon)
    return Found(
        scaled(world.evaluate(logger, horizon)),
        scaled(world.evaluate(table, horizon)),
        scaled(true_value(world, model.policy(horizon), horizon)),
        tuple(info.aside),
    )


def report(domains: list[str], shares: list[float], episodes: int, seeds: int) -> str:
    """Return a table of means over seeds."""
    lines = [
        "| domain | random actions | practice | table | learned | worst difference | set aside |",
        "|---|---|---|---|---|---|---|",
    ]
    for domain, share in tqdm([*product(domains, shares)]):
        found = [measure(domain, share, episodes, seed) for seed in range(seeds)]
        worst = min(one.learned - one.table for one in found)
        means = (np.mean([one[k] for one in found]) for k in range(3))
        aside = ", ".join(sorted({name for one in found for name in one.aside}))
        lines.append(
            f"| {domain} | {share:.0%} | {' | '.join(f'{mean:.3f}' for mean in means)} "
            f"| {worst:+.3f}{'' if worst >= -AIM else ' *'} | {aside} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--domains", nargs="+", default=list(DOMAINS), choices=list(DOMAINS))
    parser.add_argument("--shares", nargs="+", type=float, default=[0.0, 0.02, 0.1])
    parser.add_argument("--episodes", type=int, default=1_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("-o", "--output", help="a folder for experts_figures.md")
    asked = parser.parse_args()
    found = report(asked.domains, asked.shares, asked.episodes, asked.seeds)
    if asked.output:
        command = f"python benchmarks/experts.py --seeds {asked.seeds} -o {asked.output}"
        text = ABOUT.format(command=command, episodes=asked.episodes, seeds=asked.seeds, aim=AIM)
        (Path(asked.output) / "experts_figures.md").write_text(text + found)
    else:
        print(found)


if __name__ == "__main__":
    main()
