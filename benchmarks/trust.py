"""Honest values against exact truths: errors of MEU and of the honest value, and coverage.

`python benchmarks/trust.py` prints, for each case, the mean error of MEU and of the point, the
share of 90 % intervals that hold the true value of the learned policy, and the seconds it takes.
`--seeds 20 --cases random FrozenLake` says how many logs of which worlds; `-o docs` writes
docs/trust_figures.md.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import process_time

import numpy as np
from tqdm import tqdm

from rspmn.envs.domains import DOMAINS
from rspmn.envs.mdp import MDP
from rspmn.envs.random_mdp import random_mdp
from rspmn.evaluate import true_value
from rspmn.learn import learn_rspmn

#: World, episodes, steps of the policy.
CASES = [
    ("random", 10, 20), ("random", 25, 20), ("random", 50, 20), ("random", 100, 20),
    ("FrozenLake", 1_000, 8), ("FrozenLake", 1_000, 100),
    ("FrozenLake", 10_000, 8), ("FrozenLake", 10_000, 100),
    ("Elevators", 100, 10), ("Elevators", 1_000, 10), ("Elevators", 10_000, 10),
    ("SkillTeaching", 100, 10), ("SkillTeaching", 1_000, 10), ("SkillTeaching", 10_000, 10),
    ("CrossingTraffic", 200, 5), ("CrossingTraffic", 1_000, 5),
    ("Taxi", 1_000, 50),
]  # fmt: skip
HEAD = "| case | seeds | MEU - true | error of MEU | of the point | coverage | width | seconds |"
ABOUT = """# Honest values

Made by `{command}`.

Mean errors are those of MEU and of the point of `honest_value`, against the exact value of the
learned policy. Coverage is the share of logs whose 90 % interval holds it, width the mean width of
the intervals. Seconds are of CPU, {draws} draws.

"""


@cache
def domain(name: str) -> MDP:
    """Return a world of the testbed."""
    return DOMAINS[name]()


@dataclass(frozen=True)
class Trial:
    """What one log gives."""

    promise: float
    point: float
    covered: bool
    width: float
    truth: float
    seconds: float


def trial(name: str, episodes: int, horizon: int, seed: int, draws: int) -> Trial:
    """Learn from one log, and compare the honest value with the truth."""
    world = random_mdp(seed) if name == "random" else domain(name)
    model, _ = learn_rspmn(world.generate(episodes, world.horizon, seed))
    truth = true_value(world, model.policy(horizon), horizon)
    began = process_time()
    found = model.honest_value(horizon, draws=draws, rng=seed)
    seconds = process_time() - began
    near = 1e-9 * max(1.0, abs(truth))
    covered = found.low - near <= truth <= found.high + near
    return Trial(found.promise, found.point, covered, found.high - found.low, truth, seconds)


def line(name: str, episodes: int, horizon: int, trials: Sequence[Trial]) -> str:
    """Return a row of the table."""
    promise, point, truth, covered, width, seconds = (
        np.array([getattr(t, part) for t in trials])
        for part in ("promise", "point", "truth", "covered", "width", "seconds")
    )
    numbers = [
        f"{(promise - truth).mean():.3f}", f"{np.abs(promise - truth).mean():.3f}",
        f"{np.abs(point - truth).mean():.3f}", f"{covered.mean():.2f}", f"{width.mean():.3f}",
        f"{seconds.mean():.2f}",
    ]  # fmt: skip
    return f"| {name} {episodes}, {horizon} steps | {len(trials)} | {' | '.join(numbers)} |"


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--cases", nargs="*", default=["random", *DOMAINS])
    parser.add_argument("--most", type=int, default=10_000, help="episodes of the largest log")
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("-o", "--output", help="a directory to write trust_figures.md to")
    arguments = parser.parse_args()
    cases = [c for c in CASES if c[0] in arguments.cases and c[1] <= arguments.most]
    lines = [HEAD, "|---|" + "--:|" * 7]
    for case in cases:
        seeds = tqdm(range(arguments.seeds), desc=" ".join(map(str, case)), leave=False)
        lines.append(line(*case, [trial(*case, seed, arguments.draws) for seed in seeds]))
        tqdm.write(lines[-1])
    if arguments.output:
        command = " ".join(["python benchmarks/trust.py", *sys.argv[1:]])
        text = ABOUT.format(command=command, draws=arguments.draws) + "\n".join(lines) + "\n"
        Path(arguments.output, "trust_figures.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
