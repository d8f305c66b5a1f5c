"""Honest values against exact truths: errors of MEU and of the honest value, and coverage.

`python benchmarks/trust.py` prints, for each case, the mean error of MEU and of the point, the
share of 90 % intervals that hold the true value of the learned policy, and the seconds it takes.
`--seeds 20 --first 500 --cases random FrozenLake` says how many logs of which worlds, and the seed
of the first; `-o docs` writes docs/trust_figures.md, in which rows of other cases stay as they are.
Rings of machines (`ring-10`, `ring-12`, `SysAdmin-1`) take minutes, and are run only if they are
named.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import process_time

import numpy as np
from kept_rows import write_rows
from rings import Ring
from soft_boxes import learned_hospital, learned_task
from tqdm import tqdm

from rspmn.envs.domains import DOMAINS
from rspmn.envs.inventory import inventory
from rspmn.envs.lessons import lessons
from rspmn.envs.mdp import MDP
from rspmn.envs.random_mdp import random_mdp
from rspmn.evaluate import true_value
from rspmn.learn import learn_rspmn
from rspmn.model import RSPMN

#: The mean error of a normal variable, in standard deviations.
MEAN_ERROR = (2 / np.pi) ** 0.5
#: World, episodes, steps of the policy.
CASES = [
    ("random", 10, 20), ("random", 25, 20), ("random", 50, 20), ("random", 100, 20),
    ("FrozenLake", 1_000, 8), ("FrozenLake", 1_000, 100),
    ("FrozenLake", 10_000, 8), ("FrozenLake", 10_000, 100),
    ("FrozenLake", 100_000, 8), ("FrozenLake", 100_000, 100),
    ("Elevators", 100, 10), ("Elevators", 1_000, 10), ("Elevators", 10_000, 10),
    ("Elevators", 200_000, 10),
    ("SkillTeaching", 100, 10), ("SkillTeaching", 1_000, 10), ("SkillTeaching", 10_000, 10),
    ("CrossingTraffic", 200, 5), ("CrossingTraffic", 1_000, 5),
    ("Taxi", 1_000, 50), ("Lessons", 300, 12), ("Lessons", 1_000, 12),
    ("Inventory", 300, 28), ("Inventory", 1_000, 28),
    ("CartPole", 300, 200), ("MountainCar", 100, 200), ("hospital", 2_500, 30),
    ("ring-10", 300, 40), ("ring-10", 1_000, 40), ("ring-12", 1_000, 40), ("SysAdmin-1", 300, 40),
]  # fmt: skip
#: Worlds whose states are numbers.
NUMBERS = "CartPole", "MountainCar", "hospital"
#: Their true values are means of games, of which nothing is surer than to this share: if none of
#: 200 poles falls, one of 70 still may (with a probability of .05).
SAMPLED = 1e-3
#: Rings of machines, whose products of factors are not multiplied out; the last is an instance of
#: the planning competition IPPC 2011 and needs the extra `rddl`.
RINGS = "ring-10", "ring-12", "SysAdmin-1"
HEAD = (
    "| case | seeds | MEU - true | error of MEU | of the point | noise | factor | possible "
    "| flagged | coverage | width | seconds |"
)
ABOUT = """# Honest values

Made by {commands}.

Mean errors are those of MEU and of the point of `honest_value`, against the value of the learned
policy: exact, or for CartPole and MountainCar the mean of 200 games, for the hospital of 3,000
stays (then an interval that ends within a thousandth of it holds it: it is not known better). Noise
is the mean error that the draws expect of the point. Factor is the error of MEU over that of the
point, and possible that over the noise: if the draws are right, no point does better on average.
Flagged are answers with a caveat. Of the others, or of all if all are flagged, coverage is the
share of logs whose 90 % interval holds the value, and width the mean width of the intervals.
Seconds are of CPU, 300 draws unless a command says otherwise.

"""


@cache
def domain(name: str) -> MDP:
    """Return a world of the testbed, or of the competition."""
    if name == "SysAdmin-1":
        from ippc import World

        return World(name).mdp
    others = {"Lessons": lessons, "Inventory": inventory}
    return others[name]() if name in others else DOMAINS[name]()


@dataclass(frozen=True)
class Trial:
    """What one log gives."""

    promise: float
    point: float
    noise: float
    flagged: bool
    covered: bool
    width: float
    truth: float
    seconds: float


def trial(name: str, episodes: int, horizon: int, seed: int, draws: int) -> Trial:
    """Learn from one log, and compare the honest value with the truth."""
    model, truth = learned(name, episodes, horizon, seed)
    began = process_time()
    found = model.honest_value(horizon, draws=draws, rng=seed)
    seconds = process_time() - began
    near = (SAMPLED if name in NUMBERS else 1e-9) * max(1.0, abs(truth))
    covered = found.low - near <= truth <= found.high + near
    return Trial(
        found.promise, found.point, MEAN_ERROR * found.deviation, bool(found.caveats), covered,
        found.high - found.low, truth, seconds,
    )  # fmt: skip


def learned(name: str, episodes: int, horizon: int, seed: int) -> tuple[RSPMN, float]:
    """Learn from one log; return the model, and what its policy is worth."""
    if name in ("CartPole", "MountainCar"):
        return learned_task(name, episodes, horizon, seed)
    if name == "hospital":
        return learned_hospital(episodes, horizon, seed)
    if name.startswith("ring-"):
        ring = Ring(int(name.removeprefix("ring-")))
        model, _ = learn_rspmn(ring.log(episodes, seed))
        return model, ring.value(ring.actions_of(model.policy(horizon)))
    world = random_mdp(seed) if name == "random" else domain(name)
    model, _ = learn_rspmn(world.generate(episodes, world.horizon, seed))
    return model, true_value(world, model.policy(horizon), horizon)


def shown(name: str, episodes: int, horizon: int) -> str:
    """Return a case in words."""
    return f"{name} {episodes}, {horizon} steps"


def line(name: str, episodes: int, horizon: int, trials: Sequence[Trial]) -> str:
    """Return a row of the table."""
    promise, point, noise, truth, flagged, covered, width, seconds = (
        np.array([getattr(t, part) for t in trials])
        for part in ("promise", "point", "noise", "truth", "flagged", "covered", "width", "seconds")
    )
    others = ~flagged | flagged.all()
    of_meu, of_point = (np.abs(found - truth).mean() for found in (promise, point))
    numbers = [
        f"{(promise - truth).mean():.3f}", f"{of_meu:.3f}", f"{of_point:.3f}",
        f"{noise.mean():.3f}", f"{of_meu / of_point:.1f}", f"{of_meu / noise.mean():.1f}",
        str(flagged.sum()),
        f"{covered[others].mean():.2f}", f"{width[others].mean():.3f}", f"{seconds.mean():.2f}",
    ]  # fmt: skip
    return f"| {shown(name, episodes, horizon)} | {len(trials)} | {' | '.join(numbers)} |"


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--cases", nargs="*", default=["random", *DOMAINS, *NUMBERS])
    parser.add_argument("--first", type=int, default=0, help="the seed of the first log")
    parser.add_argument("--least", type=int, default=0, help="episodes of the smallest log")
    parser.add_argument("--most", type=int, default=200_000, help="episodes of the largest log")
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("-o", "--output", help="a directory to write trust_figures.md to")
    arguments = parser.parse_args()
    sizes = range(arguments.least, arguments.most + 1)
    cases = [case for case in CASES if case[0] in arguments.cases and case[1] in sizes]
    lines = [HEAD, "|---|" + "--:|" * 11]
    for case in cases:
        logs = range(arguments.first, arguments.first + arguments.seeds)
        seeds = tqdm(logs, desc=" ".join(map(str, case)), leave=False)
        lines.append(line(*case, [trial(*case, seed, arguments.draws) for seed in seeds]))
        tqdm.write(lines[-1])
    if arguments.output:
        command = " ".join(["python benchmarks/trust.py", *sys.argv[1:]])
        path = Path(arguments.output, "trust_figures.md")
        write_rows(path, ABOUT, command, lines, [shown(*case) for case in CASES])


if __name__ == "__main__":
    main()
