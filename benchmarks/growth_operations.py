"""How each operation grows with the number of interface nodes: CPU seconds, memory, exponents.

`python benchmarks/growth_operations.py --cells 1000 4000 16000 -o docs` writes
docs/growth_operations.md.
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
from numpy.typing import NDArray

import rspmn
from rspmn import RSPMN, SPMN, Episodes, Schema, Windows
from rspmn.circuit.validity import soundness_violations
from rspmn.learn import LearnConfig, learn_rspmn, refit
from rspmn.learn.em import em

ABOUT = """\
Worlds are walks on a line (one variable), on a grid (two) and in a cube (three); one move in ten
fails, and each cell is visited ten times on average. Each world of each size is measured in a
process of its own. Entries are CPU seconds, and the peak of memory above what was held before. The
exponent is the slope of log seconds by log interface nodes from the smallest size to the largest: 1
is linear.
"""

#: Steps of an episode.
LENGTH = 20
#: The number of variables of each world.
WORLDS = {"line": 1, "grid": 2, "cube": 3}
#: What one operation took: CPU seconds, and MB of memory above what was held before.
Cost = tuple[float, float]


def walks(variables: int, cells: int, seed: int) -> Episodes:
    """Return walks in a box; each cell is visited ten times on average.

    An action moves one variable by one step. One in ten fails.
    """
    rng = np.random.default_rng(seed)
    side = round(cells ** (1 / variables))
    names = [f"x{k}" for k in range(variables)]
    episodes = max(20, 10 * cells // LENGTH)
    at = rng.integers(0, side, (variables, episodes))
    steps: list[dict[str, NDArray[np.int64] | NDArray[np.float64]]] = []
    for t in range(LENGTH):
        action = rng.integers(0, 2 * variables, episodes)
        moves = rng.random(episodes) >= 0.1
        row = dict(zip(names, at.copy(), strict=True))
        at[action // 2, np.arange(episodes)] += moves * (2 * (action % 2) - 1)
        at = np.clip(at, 0, side - 1)
        earned = (at.sum(axis=0) == 0).astype(np.float64)
        steps.append({**row, "a": action, "u": earned, "e": np.arange(episodes),
                      "t": np.full(episodes, t)})  # fmt: skip
    table = {name: np.concatenate([step[name] for step in steps]) for name in steps[0]}
    schema = Schema([names, ["a"]], ["a"], "u", kinds=dict.fromkeys(names, "categorical"))
    return Episodes.from_long(table, schema, episode="e", time="t", ending="cut")


def operations(
    log: Episodes, config: LearnConfig, model: list[RSPMN]
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the name of each operation, and what does it once; `model` receives what is learned."""
    windows = Windows.from_episodes(log)
    yield "learn", lambda: model.append(learn_rspmn(windows, config)[0])
    learned = model[0]
    states = {name: log.columns[name].decode() for name in learned.schema.information_sets[0]}
    yield "policy(50), act", lambda: learned.policy(50).act({n: v[0] for n, v in states.items()})
    policy = learned.policy(50)
    yield "act_many", lambda: policy.act_many(states)
    yield "table", policy.table
    yield "action_values, unseen", lambda: policy.action_values(dict.fromkeys(states, 10**9))
    yield "meu, discounted", lambda: learned.meu(discount=0.99)
    yield "log_likelihood", lambda: learned.log_likelihood(log)
    yield "sample", lambda: learned.sample(1000, 20, rng=0)
    yield "refit", lambda: refit(learned, windows, config)
    yield "em, one pass", lambda: em(learned, log, 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        yield "save", lambda: learned.save(path)
        found: list[RSPMN | SPMN] = []
        yield "load", lambda: found.append(rspmn.load(path))
    again = found[0]
    assert isinstance(again, RSPMN)
    yield "validity", lambda: soundness_violations(again.template)


def memory(field: str) -> float:
    """Return what Linux knows of this process's memory, in MB; VmHWM is the peak, VmRSS now."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def measure(world: str, cells: int, successors: str) -> tuple[int, dict[str, Cost]]:
    """Return the number of interface nodes, and what each operation took."""
    model: list[RSPMN] = []
    found = {}
    config = LearnConfig(successors=successors)
    for name, run in operations(walks(WORLDS[world], cells, 0), config, model):
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


def table_of(found: dict[int, dict[str, Cost]]) -> list[str]:
    """Return a table in Markdown, given what was measured by number of nodes."""
    sizes = sorted(found)
    lines = [
        "| | " + " | ".join(f"{size:,} nodes" for size in sizes) + " | exponent |",
        "|---|" + "---|" * (len(sizes) + 1),
    ]
    for name in found[sizes[0]]:
        costs = [found[size][name] for size in sizes]
        cells = [f"{seconds:.2f} s, {more:.0f} MB" for seconds, more in costs]
        slope = math.nan
        if len(sizes) > 1:
            ratio = max(costs[-1][0], 1e-6) / max(costs[0][0], 1e-6)
            slope = math.log(ratio) / math.log(sizes[-1] / sizes[0])
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {slope:.2f} |")
    return lines


def main() -> None:
    """Measure, print, and write a page if one is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", nargs="+", default=list(WORLDS), choices=list(WORLDS))
    parser.add_argument("--cells", nargs="+", type=int, default=[250, 1000])
    parser.add_argument("--successors", default="factored", choices=["factored", "counts"])
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", type=Path, help="the folder to write a page to")
    options = parser.parse_args()
    if options.one:
        world, cells, successors = options.one
        print(json.dumps(measure(world, int(cells), successors)))
        return
    command = "python benchmarks/growth_operations.py --worlds " + " ".join(options.worlds)
    command += f" --cells {' '.join(map(str, options.cells))} --successors {options.successors}"
    page = ["# How operations grow", "", f"Made by `{command} -o docs`.", "", *ABOUT.splitlines()]
    for world in options.worlds:
        found = dict(measured_apart(world, cells, options.successors) for cells in options.cells)
        page += ["", f"## {world}", "", *table_of(found)]
        print("\n".join(page[-len(table_of(found)) - 2 :]), flush=True)
    if options.output:
        (options.output / "growth_operations.md").write_text("\n".join(page) + "\n")


if __name__ == "__main__":
    main()
