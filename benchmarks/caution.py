"""Cautious policies against plain ones: exact values on short logs, on average and at worst.

`python benchmarks/caution.py` prints, for each case, the mean true value of the plain policy, what
caution adds to it, with the standard error of that, and the worst of all logs. `--seeds 20 --cases
random FrozenLake --first 0` says how many logs of which worlds, and the seed of the first,
`--cautions 0 0.2` how cautious; `-o docs` writes docs/caution_figures.md, in which rows of other
cases stay as they are. The instance of the planning competition IPPC 2011, `SkillTeaching-3`, needs
the extra `rddl`, and is run only if it is named.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from time import process_time

import numpy as np
from kept_rows import write_rows
from tqdm import tqdm

from rspmn.envs.domains import WORLDS
from rspmn.envs.mdp import MDP
from rspmn.envs.random_mdp import random_mdp
from rspmn.evaluate import true_value
from rspmn.learn import learn_rspmn
from rspmn.types import Array

#: World, episodes, steps of the policy, ε of an ε-greedy logger (0: decisions are uniform).
CASES = [
    ("random", 10, 20, 0.0), ("random", 25, 20, 0.0), ("random", 10, 20, 0.3),
    ("FrozenLake", 100, 100, 0.0), ("FrozenLake", 300, 100, 0.0), ("FrozenLake", 1_000, 100, 0.0),
    ("FrozenLake", 1_000, 100, 0.3),
    ("Elevators", 100, 10, 0.0), ("Elevators", 1_000, 10, 0.0), ("Elevators", 100, 10, 0.3),
    ("CrossingTraffic", 100, 5, 0.0), ("CrossingTraffic", 1_000, 5, 0.0),
    ("SkillTeaching", 100, 10, 0.0), ("SkillTeaching", 100, 10, 0.3),
    ("SysAdmin", 100, 10, 0.0),
    ("Taxi", 300, 50, 0.0),
    ("SkillTeaching-3", 100, 40, 0.0),
]  # fmt: skip
ABOUT = """# Cautious policies

Made by {commands}.

True values of learned policies, computed exactly, over several logs of each case. `plain` is the
policy of maximum expected utility. Of each caution, what it adds to the mean and the standard error
of that, and the worst of the logs. ε is that of a logger that takes an optimal action, and with
probability ε any; without it decisions are uniform. `seconds` are of CPU, for one cautious plan.

"""


@cache
def domain(name: str) -> MDP:
    """Return a world of the testbed, or of the competition."""
    if "-" in name:
        from ippc import World

        return World(name).mdp
    return WORLDS[name]()


def logger(world: MDP, epsilon: float) -> Array | None:  # [steps, S, A]
    """Return the probabilities of an ε-greedy logger; None for uniform decisions."""
    if not epsilon:
        return None
    best = world.value_iteration(world.horizon)[1]
    return (1 - epsilon) * np.eye(len(world.actions))[best] + epsilon / len(world.actions)


def trial(
    name: str, episodes: int, horizon: int, epsilon: float, seed: int, cautions: Sequence[float]
) -> list[float]:
    """Return the values of the plain policy and of cautious ones, and the seconds of a plan."""
    world = random_mdp(seed) if name == "random" else domain(name)
    log = world.generate(episodes, world.horizon, seed, policy=logger(world, epsilon))
    model, _ = learn_rspmn(log)
    found = [true_value(world, model.policy(horizon), horizon)]
    began = process_time()
    policies = [model.policy(horizon, caution=caution) for caution in cautions]
    seconds = (process_time() - began) / len(cautions)
    return [*found, *(true_value(world, policy, horizon) for policy in policies), seconds]


def shown(case: tuple[str, int, int, float]) -> str:
    """Return a case in words."""
    name, episodes, horizon, epsilon = case
    return f"{name} {episodes}, {horizon} steps" + (f", ε = {epsilon:g}" if epsilon else "")


def line(case: tuple[str, int, int, float], trials: Sequence[Sequence[float]]) -> str:
    """Return a row of the table."""
    plain, *cautious, seconds = np.array(trials).T
    cells = [f"{plain.mean():.3f}", f"{plain.min():.3f}"]
    for values in cautious:
        gain = values - plain
        error = gain.std(ddof=1) / len(gain) ** 0.5 if len(gain) > 1 else np.nan
        cells += [f"{gain.mean():+.3f} ± {error:.3f}", f"{values.min():.3f}"]
    return f"| {shown(case)} | {len(trials)} | {' | '.join(cells)} | {seconds.mean():.2f} |"


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--cases", nargs="*", default=["random", *WORLDS])
    parser.add_argument("--first", type=int, default=0, help="the seed of the first log")
    parser.add_argument("--most", type=int, default=1_000, help="episodes of the largest log")
    parser.add_argument("--cautions", nargs="+", type=float, default=[0.0, 0.1, 0.2, 0.4])
    parser.add_argument("--above", type=float, help="count plain policies that are worth so much")
    parser.add_argument("-o", "--output", help="a directory to write caution_figures.md to")
    arguments = parser.parse_args()
    columns = [f"caution {c:g} | worst" for c in arguments.cautions]
    head = f"| case | logs | plain | worst | {' | '.join(columns)} | seconds |"
    lines = [head, "|---|" + "--:|" * (head.count("|") - 2)]
    for case in CASES:
        if case[0] not in arguments.cases or case[1] > arguments.most:
            continue
        logs = range(arguments.first, arguments.first + arguments.seeds)
        seeds = tqdm(logs, desc=" ".join(map(str, case)), leave=False)
        trials = [trial(*case, seed, arguments.cautions) for seed in seeds]
        lines.append(line(case, trials))
        tqdm.write(lines[-1])
        if arguments.above is not None:
            plain = np.array(trials)[:, 0]
            reached = f"{(plain >= arguments.above).sum()} of {len(plain)}"
            tqdm.write(
                f"plain policies: {reached} worth {arguments.above:g}, at best {plain.max():.3f}"
            )
    if arguments.output:
        command = " ".join(["python benchmarks/caution.py", *sys.argv[1:]])
        path, order = Path(arguments.output, "caution_figures.md"), [shown(case) for case in CASES]
        write_rows(path, ABOUT, command, lines, order)


if __name__ == "__main__":
    main()
