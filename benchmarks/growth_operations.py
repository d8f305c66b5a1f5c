"""How each operation grows with the number of interface nodes: CPU seconds, memory, exponents.

`python benchmarks/growth_operations.py --cells 12500 50000 --successors counts -o docs`
writes docs/growth_operations.md; `--add` adds to the tables that it has.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import rspmn
from rspmn import RSPMN, SPMN, Episodes, Schema, Windows
from rspmn.circuit import Network
from rspmn.circuit.validity import soundness_violations
from rspmn.learn import LearnConfig, learn_rspmn, refit
from rspmn.learn.em import em
from rspmn.types import Array, Ints

ABOUT = """\
Worlds: walks on a *line* (one variable) and on a *grid* (two), where one move in ten fails; a
*ring* of machines (one variable each), of which an action repairs one and one fails more often
if its neighbour is down; *random*, one variable whose values lead to three others each. A log has
episodes of {length} steps and visits each cell ten times on average; sampling and "100K" are of
episodes of this length, too. Each world of each size is measured in a process of its own. Entries
are CPU seconds, and the peak of memory above what was held before. The exponent is the slope of
log seconds by log interface nodes, fitted to all sizes: 1 is linear. The second exponent is that of
memory; it is left out below {least} MB, and exponents of seconds below {brief} s. "delays" is how
late all values are earned, by number of steps to go; the first of "act" and "act_many" to meet
actions that tie would compute it.
"""

#: Steps of an episode.
LENGTH = 20
#: The number of episodes whose likelihood is computed at any size.
MANY = 100_000
#: Of less than so many seconds and MB at the largest size no exponent is computed.
BRIEF, LEAST = 0.05, 30
#: States [n, V] and actions [n] to the next states [n, V].
Move = Callable[[Ints, Ints, np.random.Generator], Ints]
#: What one operation took: CPU seconds, and MB of memory above what was held before.
Cost = tuple[float, float]


def box(variables: int, cells: int) -> tuple[Ints, int, Move]:
    """Return the numbers of values, the number of actions and the moves of walks in a box.

    An action moves one variable by one step. One in ten fails.
    """
    sides = np.full(variables, round(cells ** (1 / variables)))

    def move(states: Ints, actions: Ints, rng: np.random.Generator) -> Ints:
        succeeds = rng.random(len(states)) >= 0.1
        after = states.copy()
        after[np.arange(len(states)), actions // 2] += succeeds * (2 * (actions % 2) - 1)
        return np.clip(after, 0, sides - 1)

    return sides, 2 * variables, move


def ring(cells: int) -> tuple[Ints, int, Move]:
    """Return the same of a ring of machines, up to `cells` states; action k repairs machine k."""
    machines = int(math.log2(cells))

    def move(states: Ints, actions: Ints, rng: np.random.Generator) -> Ints:
        up = np.where(states == 1, np.where(np.roll(states, 1, axis=1) == 1, 0.9, 0.6), 0.2)
        after = (rng.random(states.shape) < up).astype(np.int64)
        after[np.arange(len(states)), actions] = 1
        return after

    return np.full(machines, 2), machines, move


def random_world(cells: int) -> tuple[Ints, int, Move]:
    """Return the same of a world of one variable, each value of which leads to three others."""
    follow = np.random.default_rng(0).integers(0, cells, (cells, 2, 3))

    def move(states: Ints, actions: Ints, rng: np.random.Generator) -> Ints:
        return follow[states[:, 0], actions, rng.integers(0, 3, len(states))][:, None]

    return np.array([cells]), 2, move


WORLDS: dict[str, Callable[[int], tuple[Ints, int, Move]]] = {
    "line": lambda cells: box(1, cells),
    "grid": lambda cells: box(2, cells),
    "ring": ring,
    "random": random_world,
}


def generated(world: str, cells: int, seed: int) -> Episodes:
    """Return random episodes of a world; each cell is visited ten times on average."""
    rng = np.random.default_rng(seed)
    values, actions, move = WORLDS[world](cells)
    names = [f"x{k}" for k in range(len(values))]
    episodes = max(20, 10 * cells // LENGTH)
    states = rng.integers(0, values, (episodes, len(values)))
    steps: list[dict[str, Array | Ints]] = []
    for t in range(LENGTH):
        action = rng.integers(0, actions, episodes)
        after = move(states, action, rng)
        earned = (after.sum(axis=1) == 0).astype(np.float64)
        row: dict[str, Array | Ints] = dict(zip(names, states.T, strict=True))
        steps.append({**row, "a": action, "u": earned, "e": np.arange(episodes),
                      "t": np.full(episodes, t)})  # fmt: skip
        states = after
    table = {name: np.concatenate([step[name] for step in steps]) for name in steps[0]}
    schema = Schema([names, ["a"]], ["a"], "u", kinds=dict.fromkeys(names, "categorical"))
    return Episodes.from_long(table, schema, episode="e", time="t", ending="cut")


def operations(
    log: Episodes, config: LearnConfig, model: list[RSPMN]
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the name of each operation, and what does it once; `model` receives what is learned.

    Questions are asked of the model as it is loaded from its file: nothing is compiled before.
    """
    windows = Windows.from_episodes(log)
    yield "learn", lambda: model.append(learn_rspmn(windows, config)[0])
    learned = model[0]
    yield "refit", lambda: refit(learned, windows, config)
    yield "em, one pass", lambda: em(learned, log, 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        yield "save", lambda: learned.save(path)
        found: list[RSPMN | SPMN] = []
        yield "load", lambda: found.append(rspmn.load(path))
    loaded = found[0]
    assert isinstance(loaded, RSPMN)
    template = loaded.template
    yield (
        "validity",
        lambda: soundness_violations(Network(template.nodes, template.roots)),
    )
    states = {name: log.columns[name].decode() for name in loaded.schema.information_sets[0]}
    first = {name: values[0] for name, values in states.items()}
    yield "policy(50)", lambda: loaded.policy(50).value()
    yield "policy(discount=0.99)", lambda: loaded.policy(discount=0.99).value()
    policy = loaded.policy(50)
    yield "delays", lambda: policy.planned.at(49, delays=True)
    yield "act, first", lambda: policy.act(first)
    yield "act, 1,000 times", lambda: [policy.act(first) for _ in range(1000)]
    yield "act_many", lambda: policy.act_many(states)
    yield "table", policy.table
    yield "action_values, unseen", lambda: policy.action_values(dict.fromkeys(states, 10**9))
    yield "honest_value(50)", lambda: policy.honest_value(draws=20)
    drawn: list[Episodes] = []
    yield "sample, 100K", lambda: drawn.append(loaded.sample(MANY, LENGTH, rng=0))
    yield "log_likelihood", lambda: loaded.log_likelihood(log)
    yield "log_likelihood, 100K", lambda: loaded.log_likelihood(drawn[0])


def memory(field: str) -> float:
    """Return what Linux knows of this process's memory, in MB; VmHWM is the peak, VmRSS now."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def measure(world: str, cells: int, successors: str) -> tuple[int, dict[str, Cost]]:
    """Return the number of interface nodes, and what each operation took."""
    model: list[RSPMN] = []
    found = {}
    config = LearnConfig(successors=successors)
    for name, run in operations(generated(world, cells, 0), config, model):
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        before, start = memory("VmRSS"), time.process_time()
        run()
        found[name] = time.process_time() - start, memory("VmHWM") - before
    return model[0].num_interfaces, found


def measured_apart(world: str, cells: int, successors: str) -> tuple[int, dict[str, Cost]]:
    """Return `measure` of a process of its own."""
    call = [sys.executable, __file__, "--one", world, str(cells), successors]
    answer = json.loads(subprocess.run(call, check=True, stdout=subprocess.PIPE).stdout)
    return answer[0], {name: tuple(cost) for name, cost in answer[1].items()}


def exponent(sizes: list[int], costs: list[float], least: float) -> str:
    """Return the slope of log cost by log size; a dash where the last cost is below `least`."""
    if len(sizes) < 2 or costs[-1] < least:
        return "-"
    slope, _ = np.polyfit(np.log(sizes), np.log(np.maximum(costs, least / 100)), 1)
    return f"{slope:.2f}"


def table_of(found: dict[int, dict[str, Cost]]) -> list[str]:
    """Return a table in Markdown, given what was measured by number of nodes."""
    sizes = sorted(found)
    lines = [
        "| | " + " | ".join(f"{size:,} nodes" for size in sizes) + " | exponent | of memory |",
        "|---|" + "---:|" * (len(sizes) + 2),
    ]
    for name in found[sizes[0]]:
        costs = [found[size][name] for size in sizes]
        cells = [f"{seconds:.2f} s, {max(more, 0):.0f} MB" for seconds, more in costs]
        seconds, more = ([cost[k] for cost in costs] for k in (0, 1))
        cells += [exponent(sizes, seconds, BRIEF), exponent(sizes, more, LEAST)]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def head() -> str:
    """Return what is above all tables."""
    about = ABOUT.format(length=LENGTH, least=LEAST, brief=BRIEF)
    return f"# How operations grow\n\n{about}"


def made_by(worlds: list[str], cells: list[int], successors: str) -> str:
    """Return the command of some tables."""
    command = f"python benchmarks/growth_operations.py --worlds {' '.join(worlds)}"
    command += f" --cells {' '.join(map(str, cells))} --successors {successors}"
    return f"\nMade by `{command} -o docs`:\n"


def main() -> None:
    """Measure, print, and write a page after each world if one is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", nargs="+", default=list(WORLDS), choices=list(WORLDS))
    parser.add_argument("--cells", nargs="+", type=int, default=[500, 1000])
    parser.add_argument("--successors", default="factored", choices=["factored", "counts"])
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", type=Path, help="the folder to write a page to")
    parser.add_argument("--add", action="store_true", help="keep the tables that the page has")
    options = parser.parse_args()
    if options.one:
        world, cells, successors = options.one
        print(json.dumps(measure(world, int(cells), successors)))
        return
    path = None if options.output is None else options.output / "growth_operations.md"
    before = path.read_text() if path is not None and options.add else head()
    tables = ""
    for number, world in enumerate(options.worlds):
        found = dict(measured_apart(world, cells, options.successors) for cells in options.cells)
        table = "\n".join(["", f"## {world}", "", *table_of(found), ""])
        print(table, flush=True)
        tables += table
        if path is not None:
            made = made_by(options.worlds[: number + 1], options.cells, options.successors)
            path.write_text(before + made + tables)


if __name__ == "__main__":
    main()
