"""The domains with columns of noise added: interface nodes, values of policies, seconds.

`python benchmarks/noise.py` prints a table: for each domain and each kind of noise, with 0, 3, 10
and 30 columns of it, how many interface nodes are learned, the value of the policy, 0 for random
and 1 for optimal actions, computed exactly, and the seconds that learning took. `--seeds 3
--episodes 0` takes logs of the domains' own sizes; `-o docs` writes docs/noise_figures.md.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from rspmn.data.columns import Column
from rspmn.data.episodes import Episodes
from rspmn.envs.domains import WORLDS
from rspmn.envs.mdp import MDP
from rspmn.learn import learn_rspmn
from rspmn.model import RSPMN
from rspmn.schema import Kind, Schema
from rspmn.types import Array, Bools

COLUMNS = 3, 10, 30
#: A policy is asked so often about each state, with other values of the noise.
DRAWS = 5
#: Nodes may differ by this share, and values of policies by this much.
AIM_NODES, AIM_VALUE = 0.1, 0.01
ABOUT = """# Columns of noise

Made by `{command}`.

Each domain was learned from logs of {episodes} and from the same logs with columns of noise: values
drawn anew in each step, chains that keep their value in four of five steps, attributes that are
constant in an episode, of 2 to 10 values each, and numbers of these three sorts. Interface nodes,
the value of the policy, 0 for random and 1 for optimal actions, computed exactly, the share of the
noise that was set aside, and the seconds of learning: means over logs, {seeds} of each sort. A star
marks nodes that differ by more than {nodes:.0%} from those without noise, and values by more than
{value}.

"""


def _drawn(fresh: Bools, size: int, rng: np.random.Generator) -> Array:
    """Return a value for each row, drawn anew; `fresh` are the rows in which episodes begin."""
    return np.asarray(rng.integers(size, size=len(fresh)))


def _held(fresh: Bools, drawn: Array) -> Array:
    """Return the value of the last fresh row in each row."""
    return np.asarray(drawn[np.maximum.accumulate(np.where(fresh, np.arange(len(fresh)), 0))])


def _constant(fresh: Bools, size: int, rng: np.random.Generator) -> Array:
    return _held(fresh, _drawn(fresh, size, rng))


def _chain(fresh: Bools, size: int, rng: np.random.Generator) -> Array:
    return _constant(fresh | (rng.random(len(fresh)) < 0.2), size, rng)


def _numbers(fresh: Bools, size: int, rng: np.random.Generator) -> Array:
    """Return numbers: drawn anew, constant in an episode or autocorrelated, in turn by size."""
    drawn = rng.normal(size=len(fresh))
    if size % 3 == 0:
        return drawn
    if size % 3 == 1:
        return _held(fresh, drawn)
    for k in np.flatnonzero(~fresh).tolist():
        drawn[k] = 0.9 * drawn[k - 1] + 0.4 * drawn[k]
    return drawn


KINDS: dict[str, Callable[[Bools, int, np.random.Generator], Array]] = {
    "drawn": _drawn, "chain": _chain, "attribute": _constant, "numbers": _numbers,
}  # fmt: skip


def with_noise(log: Episodes, kind: str, columns: int, rng: np.random.Generator) -> Episodes:
    """Return a log with more variables of the state, of 2 to 10 values each, or numbers."""
    rows = log.offsets[-1] + len(log)
    fresh = np.zeros(rows, dtype=bool)
    begins = log.offsets[:-1] + np.arange(len(log))  # one row more for each final state
    fresh[begins] = True
    final = log.offsets[1:] + np.arange(len(log))
    of_kind = Kind.CONTINUOUS if kind == "numbers" else Kind.INTEGER
    names = [f"noise{k}" for k in range(columns)]
    made = {
        name: Column(
            of_kind,
            KINDS[kind](fresh, 2 + k % 9, rng),
            () if kind == "numbers" else tuple(range(2 + k % 9)),
        )
        for k, name in enumerate(names)
    }
    steps = np.setdiff1d(np.arange(rows), final)
    old = log.schema
    first, *others = old.order
    schema = Schema(
        [[*first, *names], *others], old.decisions, old.utility,
        {**old.kinds, **dict.fromkeys(names, of_kind)},
    )  # fmt: skip
    return replace(
        log,
        schema=schema,
        columns={**log.columns, **{name: c.take(steps) for name, c in made.items()}},
        finals={**log.finals, **{name: c.take(final) for name, c in made.items()}},
    )


def policy_value(world: MDP, model: RSPMN, log: Episodes, rng: np.random.Generator) -> float:
    """Return the exact value of a policy that sees noise as in the steps of a log.

    In states that its model never saw it takes the first action.
    """
    names = [n for n in model.schema.state_variables if n not in world.schema.variables]
    state = np.repeat(np.arange(len(world.states)), DRAWS if names else 1)
    seen = rng.integers(log.num_steps, size=len(state))
    table: dict[str, list[Any]] = {
        name: [world.states[s][k] for s in state.tolist()]
        for k, name in enumerate(world.schema.state_variables)
    }
    table |= {name: log.columns[name].take(seen).decode() for name in names}
    number = {action: index for index, action in enumerate(world.actions)}
    first = dict(zip(world.schema.decisions, world.actions[0], strict=True))
    chances = np.zeros((world.horizon, len(world.states), len(world.actions)))
    plan = model.policy(world.horizon).plan(table, range(world.horizon), otherwise=first)
    for t, acts in enumerate(plan):
        made = acts if isinstance(acts, dict) else {world.schema.decisions[0]: acts}
        chosen = [number[a] for a in zip(*(made[d].tolist() for d in made), strict=True)]
        np.add.at(chances[t].reshape(-1), state * len(world.actions) + np.array(chosen), 1.0)
    return world.evaluate(chances / chances.sum(axis=2, keepdims=True), world.horizon)


class Result(NamedTuple):
    """What was learned from one log."""

    nodes: float
    value: float  # 0 for random, 1 for optimal actions
    aside: float  # the share of the noise that was set aside
    lost: float  # how many of the domain's own variables were
    seconds: float


def measure(name: str, kind: str, columns: int, episodes: int, seed: int) -> Result:
    """Learn one domain from a log with noise."""
    world, rng = WORLDS[name](), np.random.default_rng(seed)
    log = world.generate(episodes or world.episodes, world.horizon, seed, "final")
    if columns:
        log = with_noise(log, kind, columns, rng)
    start = perf_counter()
    model, info = learn_rspmn(log)
    seconds = perf_counter() - start
    uniform = np.full((len(world.states), len(world.actions)), 1 / len(world.actions))
    least, most = world.evaluate(uniform, world.horizon), world.optimum(world.horizon)
    value = (policy_value(world, model, log, rng) - least) / (most - least)
    noise = [n for n in info.aside if n not in world.schema.variables]
    return Result(
        info.interfaces, value, len(noise) / max(1, columns), len(info.aside) - len(noise), seconds
    )


def report(worlds: list[str], columns: list[int], episodes: int, seeds: int) -> str:
    """Return a table of means over seeds."""
    lines = [
        "| domain | noise | columns | interface nodes | value | set aside | s |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in worlds:
        plain = [measure(name, "", 0, episodes, seed) for seed in range(seeds)]
        lines.append(_line(name, "none", 0, plain, plain))
        for kind, number in tqdm([*product(KINDS, filter(None, columns))], name):
            found = [measure(name, kind, number, episodes, seed) for seed in range(seeds)]
            lines.append(_line(name, kind, number, found, plain))
    return "\n".join(lines) + "\n"


def _line(name: str, kind: str, columns: int, found: list[Result], plain: list[Result]) -> str:
    of, against = Result(*np.mean(found, axis=0)), Result(*np.mean(plain, axis=0))
    nodes = "" if abs(of.nodes / against.nodes - 1) <= AIM_NODES else " *"
    value = "" if abs(of.value - against.value) <= AIM_VALUE else " *"
    return (
        f"| {name} | {kind} | {columns} | {of.nodes:.0f}{nodes} | {of.value:.3f}{value} "
        f"| {of.aside:.0%}{f' and {of.lost:g} more' if of.lost else ''} | {of.seconds:.2f} |"
    )


def main() -> None:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", nargs="+", default=list(WORLDS), choices=list(WORLDS))
    parser.add_argument("--columns", nargs="+", type=int, default=list(COLUMNS))
    parser.add_argument("--episodes", type=int, default=500, help="0: as many as a domain has")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("-o", "--output", help="a folder for noise_figures.md")
    asked = parser.parse_args()
    found = report(asked.worlds, asked.columns, asked.episodes, asked.seeds)
    if asked.output:
        size = f"{asked.episodes:,} episodes" if asked.episodes else "the domains' own sizes"
        command = (
            f"python benchmarks/noise.py --episodes {asked.episodes} --seeds {asked.seeds} "
            f"-o {asked.output}"
        )
        text = ABOUT.format(
            command=command, episodes=size, seeds=asked.seeds, nodes=AIM_NODES, value=AIM_VALUE
        )
        (Path(asked.output) / "noise_figures.md").write_text(text + found)
    else:
        print(found)


if __name__ == "__main__":
    main()
