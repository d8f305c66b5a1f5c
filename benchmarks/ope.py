"""Off-policy estimates against exact truths: errors, coverage of intervals, effective episodes.

`python benchmarks/ope.py` prints, for each world and each of five policies, the true value, the
mean error of each estimator, and the share of its 95 % intervals that hold the truth. `--seeds 10
--first 500 --cases FrozenLake` says how many logs of which worlds, and the seed of the first; `-o
docs` writes docs/ope_figures.md, in which tables of other cases stay as they are.
"""

import argparse
import sys
from functools import cache
from pathlib import Path
from time import process_time

import numpy as np
from tqdm import tqdm

from rspmn import learn_rspmn
from rspmn.envs.domains import WORLDS
from rspmn.envs.mdp import MDP
from rspmn.evaluate import OffPolicy, off_policies
from rspmn.evaluate.logged import Joint
from rspmn.evaluate.target_policies import AskedStates
from rspmn.types import Array

#: World, episodes of the log, steps of the policies, logs.
CASES = [
    ("FrozenLake", 1_000, 8, 100), ("FrozenLake", 10_000, 8, 40), ("FrozenLake", 10_000, 20, 40),
    ("Taxi", 1_000, 50, 20), ("SysAdmin", 1_000, 10, 12),
]  # fmt: skip
METHODS = {
    "model": "model", "doubly robust": "DR", "weighted doubly robust": "weighted DR",
    "marginalised": "marginalised", "weighted importance sampling": "weighted IS",
    "importance sampling": "IS",
}  # fmt: skip
ABOUT = """# Off-policy estimates

Made by {commands}.

Five policies: the optimal one; that one or, with probability .3 in each step, a uniform decision;
uniform decisions; the policy of the log; and the worst decision in each state, if the best follow.
Each is evaluated on the same logs of another policy: uniform decisions, in Taxi a noisy expert.
Errors are means over logs of |estimate - truth|; a dash where an estimator is not defined
for most logs. Behind each, in brackets, the share of logs whose 95 % interval holds the truth.
Flagged are logs in which all rewards are 0 where it is known what followed: the model has a caveat.
Where there are any, of the model the second share is that of the other logs.
Effective are the episodes that weigh in importance sampling (the median), of as many as the case
says. Seconds are of CPU for all five policies together.

"""


class Tables:
    """A policy of an MDP, given as probabilities [horizon, S, A], as a target."""

    stationary = False

    def __init__(self, world: MDP, chances: Array) -> None:
        self.world, self.chances = world, chances

    def probabilities(self, asked: AskedStates, t: int) -> Array:
        """Return the probabilities in the states of the log."""
        situations = asked.situations
        place: dict[Joint, int] = {state: k for k, state in enumerate(self.world.states)}
        rows = [place[tuple(state.values())] for state in situations.known]
        found = np.zeros((situations.count, len(situations.decisions)))
        for column, action in enumerate(self.world.actions):
            if action in situations.number:
                found[:, situations.number[action]] = self.chances[t, rows, column]
        return found


@cache
def targets(name: str, horizon: int) -> dict[str, tuple[object, float]]:
    """Return five policies with their true values."""
    world = WORLDS[name]()
    size = len(world.actions)
    best = np.eye(size)[world.value_iteration(horizon)[1]]
    worst = np.stack([
        np.eye(size)[world.action_values(horizon - t).argmin(axis=1)] for t in range(horizon)
    ])  # fmt: skip
    uniform = np.full(best.shape, 1 / size)
    tables = {"optimal": best, "optimal, ε = .3": 0.7 * best + 0.3 * uniform, "uniform": uniform}
    found: dict[str, tuple[object, float]] = {
        policy: (Tables(world, chances), world.evaluate(chances, horizon))
        for policy, chances in {**tables, "worst": worst}.items()
    }
    return found | {"practice": ("practice", world.evaluate(None, horizon))}


def answers(
    name: str, episodes: int, horizon: int, seed: int, draws: int
) -> tuple[list[OffPolicy], bool, float]:
    """Return the estimates of all policies from one log, a flag, and the seconds that they take."""
    log = WORLDS[name]().generate(episodes, WORLDS[name]().horizon, seed)
    model, _ = learn_rspmn(log)
    policies = [target for target, _ in targets(name, horizon).values()]
    began = process_time()
    found = off_policies(model, log, policies, horizon, draws=draws, rng=seed, level=0.95)
    return found, bool(model.source.caveats), process_time() - began


def lines(name: str, episodes: int, horizon: int, logs: range, draws: int) -> list[str]:
    """Return the table of a case, for logs of some seeds."""
    found: dict[str, list[OffPolicy]] = {policy: [] for policy in targets(name, horizon)}
    seconds, flags = 0.0, list[bool]()
    for seed in tqdm(logs, desc=f"{name} {episodes}", leave=False):
        answer, flagged, time = answers(name, episodes, horizon, seed, draws)
        flags.append(flagged)
        seconds += time / len(logs)
        for policy, estimates in zip(found, answer, strict=True):
            found[policy].append(estimates)
    counted = f"{len(logs)} logs" + (f", {sum(flags)} flagged" if any(flags) else "")
    rows = [
        f"## {name}, {episodes} episodes, {horizon} steps ({counted}, {seconds:.2f} s)", "",
        f"| policy | truth | {' | '.join(METHODS.values())} | effective | coverage |",
        "|---|" + "--:|" * (len(METHODS) + 3),
    ]  # fmt: skip
    for policy, (_, truth) in targets(name, horizon).items():
        cells = [cell(found[policy], method, truth, flags) for method in METHODS]
        effective = np.median([each["importance sampling"].effective for each in found[policy]])
        covered = np.mean([each.coverage for each in found[policy]])
        rows.append(
            f"| {policy} | {truth:.4g} | {' | '.join(cells)} | {effective:.3g} | {covered:.3f} |"
        )
    return [*rows, ""]


def cell(found: list[OffPolicy], method: str, truth: float, flags: list[bool]) -> str:
    """Return the mean error of an estimator, and the coverage of its interval.

    That of the model is also of the logs that are not flagged.
    """
    estimates = [each[method] for each in found]
    errors = np.array([abs(e.value - truth) for e in estimates])
    if np.isnan(errors).mean() > 0.5:
        return "-"
    near = 1e-9 * max(1.0, abs(truth))
    covered = np.array([e.low - near <= truth <= e.high + near for e in estimates])
    shares = [covered]
    if method == "model" and 0 < sum(flags) < len(flags):
        shares.append(covered[~np.array(flags)])
    return f"{np.nanmean(errors):.3g} ({', '.join(f'{share.mean():.2f}' for share in shares)})"


def write(path: Path, command: str, lines: list[str]) -> None:
    """Write the tables; those of other cases that are there already are kept."""
    commands, tables = [f"`{command}`"], sections("\n".join(lines))
    if path.exists():
        text = path.read_text(encoding="utf-8")
        made = text.split("Made by ")[1].split(".\n")[0].split(",\n")
        commands = [*(part for part in made if part not in commands), *commands]
        tables = sections(text) | tables
    order = [
        f"{name}, {episodes} episodes, {horizon} steps" for name, episodes, horizon, _ in CASES
    ]
    found = "\n".join(tables[case] for case in order if case in tables)
    path.write_text(ABOUT.format(commands=",\n".join(commands)) + found, encoding="utf-8")


def sections(text: str) -> dict[str, str]:
    """Return the tables of a page by their case."""
    parts = text.split("## ")[1:]
    return {part.split(" (")[0]: f"## {part.rstrip()}\n" for part in parts}


def main() -> None:
    """Print the tables, or write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="logs of a case, at most")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first log")
    parser.add_argument("--cases", nargs="*", default=["FrozenLake", "Taxi", "SysAdmin"])
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("-o", "--output", help="a directory to write ope_figures.md to")
    arguments = parser.parse_args()
    found = []
    for name, episodes, horizon, logs in CASES:
        if name in arguments.cases:
            seeds = range(arguments.first, arguments.first + min(logs, arguments.seeds))
            found += lines(name, episodes, horizon, seeds, arguments.draws)
            tqdm.write("\n".join(found[-10:]))
    if arguments.output:
        command = " ".join(["python benchmarks/ope.py", *sys.argv[1:]])
        write(Path(arguments.output, "ope_figures.md"), command, found)


if __name__ == "__main__":
    main()
