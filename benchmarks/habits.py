"""Logs of somebody who acts by a variable that does not matter, with and without that variable.

`python benchmarks/habits.py` prints the value of learned policies, 0 for random and 1 for optimal
actions, by world, by how the variable moves, by the share of free choices and by episodes.
`--seeds 3 -o docs` writes docs/habits_figures.md. `practice.py` is about logs of those who act by
what matters.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from time import perf_counter

import numpy as np
from tqdm import tqdm

from rspmn.data.episodes import Episodes
from rspmn.envs.frozen_lake import frozen_lake, random_map
from rspmn.envs.mdp import MDP
from rspmn.envs.sys_admin import sys_admin
from rspmn.evaluate import Tabular, true_value
from rspmn.learn import learn_rspmn
from rspmn.schema import Schema
from rspmn.types import Array

#: The variable that the logger acts by, and how many values it has.
HABIT, VALUES = "ward", 5
#: How it moves: drawn anew in each step, the same in all of an episode, or one after the other; and
#: drawn, with actions that depend on the state as well.
MOVES = {
    "drawn": np.full((VALUES, VALUES), 1 / VALUES),
    "constant": np.eye(VALUES),
    "in turn": np.roll(np.eye(VALUES), 1, axis=1),
    "and state": np.full((VALUES, VALUES), 1 / VALUES),
}
FREE = 0.0, 0.05, 0.2
EPISODES = 100, 1_000, 10_000
ABOUT = """# Habits

Made by `{command}`.

Each log was made by somebody who acts by a variable of five values that does not matter. The
figures are the values of learned policies, 0 for random and 1 for optimal actions: learned with
the variable, from the same log without it, and that of a table of counts without it. Means over
seeds, with the standard deviation of the difference and the seconds that learning took. A star
marks a mean loss of more than {aim}.

The variable is drawn anew in each step, constant in an episode, or goes in turn. "and state":
it is drawn, and the action depends on the state too. Without free choices a log is no different
from that of an expert, and the variable is kept; so it is where free choices are few in a short
log. Whoever knows that it does not matter says so: `ignore`.
Five values without free choices make five of the seven decisions of the factored world, and the
same decision in all of an episode if the variable is constant. What was never done is not
learned, with the variable or without.

"""
#: The policies of a log may differ by so much with the variable and without it.
AIM = 0.02


def random_world(seed: int, states: int = 20, actions: int = 4, branches: int = 3) -> MDP:
    """Return an MDP in which each action leads to a few states, and a few states pay."""
    rng = np.random.default_rng(seed)
    rows = states * actions
    successors = np.sort(rng.permuted(np.tile(np.arange(states), (rows, 1)), axis=1)[:, :branches])
    probabilities = rng.dirichlet(np.ones(branches), rows)
    pays = np.repeat(rng.random((states, actions)).round(1).ravel(), branches)
    return MDP(
        "random MDP",
        Schema([["s"], ["a"]], ["a"], "u", {"s": "integer", "a": "integer", "u": "continuous"}),
        tuple((s,) for s in range(states)), tuple((a,) for a in range(actions)),
        np.arange(rows + 1) * branches, successors.ravel(), probabilities.ravel(), pays,
        np.full(states, 1 / states), np.zeros(states, dtype=bool), 1_000, 10,
    )  # fmt: skip


def worlds(seed: int) -> dict[str, MDP]:
    """Return the worlds of a seed."""
    lake = replace(frozen_lake(random_map(5, seed, 0.15)), horizon=20)
    return {"lake": lake, "random": random_world(seed), "factored": sys_admin(6)}


def with_habit(world: MDP, moving: str, free: float) -> MDP:
    """Return a world with one more variable, logged by somebody who acts by its value.

    With probability `free` an action is drawn.
    """
    moves = MOVES[moving]  # [VALUES, VALUES], the probability of each value after each
    size, S, A = len(moves), len(world.states), len(world.actions)
    indptr, successors, probabilities, rewards = [0], [], [], []
    for s, v, a in product(range(S), range(size), range(A)):
        part = slice(int(world.indptr[s * A + a]), int(world.indptr[s * A + a + 1]))
        then = np.eye(size)[v] if world.terminal[s] else moves[v]
        to = np.flatnonzero(then)
        successors.append((world.successors[part][:, None] * size + to).ravel())
        probabilities.append((world.probabilities[part][:, None] * then[to]).ravel())
        rewards.append(np.repeat(world.rewards[part], len(to)))
        indptr.append(indptr[-1] + len(successors[-1]))
    schema = world.schema
    order = [[*schema.information_sets[0], HABIT], *([d] for d in schema.decisions)]
    number = np.arange(S)[:, None] * (moving == "and state") + np.arange(size)
    habit = np.eye(A)[number.ravel() % A]
    return MDP(
        world.name,
        Schema(order, schema.decisions, schema.utility, {**schema.kinds, HABIT: "integer"}),
        tuple((*state, v) for state in world.states for v in range(size)), world.actions,
        np.array(indptr), np.concatenate(successors), np.concatenate(probabilities),
        np.concatenate(rewards), np.repeat(world.start, size) / size,
        np.repeat(world.terminal, size), world.episodes, world.horizon,
        (1 - free) * habit + free / A,
    )  # fmt: skip


def without(log: Episodes, schema: Schema) -> Episodes:
    """Return a log without the variables that a schema lacks."""
    columns = {name: log.columns[name] for name in schema.variables}
    finals = {name: log.finals[name] for name in schema.state_variables}
    return replace(log, schema=schema, columns=columns, finals=finals)


@dataclass(frozen=True)
class Task:
    """One log."""

    world: str
    moves: str
    free: float
    episodes: int


def measure(task: Task, seed: int) -> tuple[Array, float]:
    """Return the values of policies, learned with the variable, without it, and a table's.

    Also the seconds that learning with it took.
    """
    world = worlds(seed)[task.world]
    wide = with_habit(world, task.moves, task.free)
    log = wide.generate(task.episodes, world.horizon, seed, "final")
    narrow = without(log, world.schema)
    start = perf_counter()
    model, _ = learn_rspmn(log)
    seconds = perf_counter() - start
    uniform = np.full((len(world.states), len(world.actions)), 1 / len(world.actions))
    least, most = world.evaluate(uniform, world.horizon), world.optimum(world.horizon)
    found = np.array([
        true_value(wide, model.policy(world.horizon), world.horizon),
        true_value(world, learn_rspmn(narrow)[0].policy(world.horizon), world.horizon),
        world.evaluate(Tabular.fit(narrow).policy_for(world, world.horizon), world.horizon),
    ])  # fmt: skip
    return (found - least) / (most - least), seconds


def report(tasks: Sequence[Task], seeds: int) -> str:
    """Return a table of means over seeds, with the standard deviation of the difference."""
    lines = [
        "| world | variable | free choices | episodes | with | without | difference | table | s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for task in tqdm(tasks):
        found = [measure(task, seed) for seed in range(seeds)]
        values = np.array([value for value, _ in found])
        gap = values[:, 0] - values[:, 1]
        mark = "" if gap.mean() > -AIM else " *"
        lines.append(
            f"| {task.world} | {task.moves} | {task.free:.0%} | {task.episodes:,} "
            f"| {values[:, 0].mean():.3f} | {values[:, 1].mean():.3f} "
            f"| {gap.mean():+.3f} ± {gap.std():.3f}{mark} | {values[:, 2].mean():.3f} "
            f"| {np.mean([s for _, s in found]):.2f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--worlds", nargs="+", default=["lake", "random", "factored"])
    parser.add_argument("--moves", nargs="+", default=list(MOVES), choices=list(MOVES))
    parser.add_argument("--free", nargs="+", type=float, default=list(FREE))
    parser.add_argument("--episodes", nargs="+", type=int, default=list(EPISODES))
    parser.add_argument("-o", "--output", help="a folder for habits_figures.md")
    asked = parser.parse_args()
    tasks = [Task(*each) for each in product(asked.worlds, asked.moves, asked.free, asked.episodes)]
    found = report(tasks, asked.seeds)
    if asked.output:
        command = f"python benchmarks/habits.py --seeds {asked.seeds} -o {asked.output}"
        text = ABOUT.format(command=command, aim=AIM)
        (Path(asked.output) / "habits_figures.md").write_text(text + found)
    else:
        print(found)


if __name__ == "__main__":
    main()
