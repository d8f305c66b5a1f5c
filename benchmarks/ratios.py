"""CPU time and peak memory of many workloads, as ratios to an earlier commit in the same run.

`python benchmarks/ratios.py 7c8e7ec -o docs` writes docs/ratio_figures.md. Each workload runs in a
process of its own, by the code of the earlier commit and by this one in turn. This file therefore
uses only names that both have, and a process imports only what its workload does.
"""

import argparse
import io
import json
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
#: The last commit before the redesign of the package.
BEFORE = "7c8e7ec"
DOMAINS = (
    "GridUniverse", "FrozenLake", "Maze", "Taxi", "SkillTeaching", "Elevators", "CrossingTraffic",
)  # fmt: skip
#: A process repeats its workload, its preparation included, until this much CPU time has passed.
SECONDS = 2.0
ABOUT = """\
Each workload runs in a process of its own, by the code of commit {old} and by this one in turn, so
many rounds; a process repeats it for a while, and its least CPU time counts (imports are not
repeated). Ratios are new to old, medians with the least and the most: below 1 is better. Memory is
the peak of the whole process. Milliseconds are the new ones, for orientation. Learning and reading
use logs of the paper's sizes. Questions are asked of the model of Taxi as it is loaded.
"""

#: What makes the object that is asked, which is not measured, and what is.
Workload = tuple[Callable[[], Any], Callable[[Any], object]]


class Cost(NamedTuple):
    """What a workload took in one process."""

    seconds: float  # of CPU
    peak: float  # MB


# ---- what is learned from and asked; made once, in the first run of a process ------

#: Where the files of a process are, and its share of the paper's episodes; set by `main`.
folder = Path()
share = 1.0


@cache
def domain(name: str) -> Any:
    """Return one of the seven domains."""
    from rspmn.envs import domains

    return domains.DOMAINS[name]()


@cache
def log(name: str) -> Any:
    """Return a log of a domain."""
    return generated(name, share)


def generated(name: str, of_paper: float) -> Any:
    """Return a log with a share of the paper's episodes."""
    mdp = domain(name)
    return mdp.generate(max(10, int(of_paper * mdp.episodes)), mdp.horizon, 0, "final")


@cache
def file(kind: str, name: str, order: str = "") -> str:
    """Return the path of a log in a file of some kind, perhaps with its rows in another order."""
    import duckdb

    log(name).to_parquet(folder / "log.parquet")
    ordered = f"order by {order}" if order else ""
    path = f"{folder}/rows.{kind}"
    duckdb.sql(f"copy (from '{folder}/log.parquet' {ordered}) to '{path}'")
    return path


@cache
def small_table() -> dict[str, Any]:
    """Return a log of a thousand rows in a mapping."""
    return {name: cells[:1000] for name, cells in log("FrozenLake").to_long().items()}


@cache
def model_file(name: str) -> Path:
    """Return the path of a model that is learned from a tenth of the log, which is enough."""
    from rspmn.learn import learn_rspmn

    learn_rspmn(generated(name, share / 10))[0].save(folder / f"{name}.json")
    return folder / f"{name}.json"


@cache
def states() -> list[dict[str, Any]]:
    """Return a thousand states of Taxi in which something is decided."""
    mdp = domain("Taxi")
    decided = [s for s in mdp.states if s[2] != s[3]]
    found = [dict(zip(mdp.schema.state_variables, s, strict=True)) for s in decided]
    return [found[k % len(found)] for k in range(1000)]


@cache
def many_states() -> dict[str, Any]:
    """Return a million of them, as columns."""
    import numpy as np

    rows = np.random.default_rng(0).integers(0, 1000, int(share * 1_000_000))
    return {name: np.array([state[name] for state in states()])[rows] for name in states()[0]}


@cache
def decisions() -> tuple[dict[str, Any], Any]:
    """Return a table of past decisions, two in a row, and its schema."""
    import numpy as np

    from rspmn import Schema

    rng, rows = np.random.default_rng(0), int(share * 100_000)
    table: dict[str, Any] = {name: rng.integers(0, 3, rows) for name in ("x0", "x1", "x2")}
    table["d"] = rng.integers(0, 2, rows)
    table["r"] = (rng.random(rows) < 0.2 + 0.5 * (table["d"] == table["x0"])).astype(int)
    table["e"] = rng.integers(0, 3, rows)
    table["u"] = 10.0 * (table["e"] == table["r"]) - 3.0 * table["d"] + (table["x1"] == table["e"])
    return table, Schema([["x0", "x1", "x2"], ["d"], ["r"], ["e"]], ["d", "e"], "u")


# ---- workloads -------------------------------------------------------------------


def nothing() -> None:
    """Return what workloads are given that ask nothing."""


def model(name: str = "Taxi") -> Any:
    """Return the model of a domain, loaded again: it keeps no answers."""
    from rspmn import RSPMN

    return RSPMN.load(model_file(name))


def policy() -> Any:
    """Return a policy that has its plan: it was asked at all times, in one state."""
    found = model().policy(50, otherwise=0)  # in a short log some states are missing
    for t in range(50):
        found.act(states()[0], t)
    return found


def act(decides: Any) -> Any:
    """Decide in a thousand states, at all times."""
    return [decides.act(state, t % 50) for t, state in enumerate(states())]


def asked(decides: Any) -> Any:
    """Return a policy that has been asked in all these states."""
    act(decides)
    return decides


def learn(name: str, kind: str = "", **options: Any) -> object:
    """Learn from a log and make the policy; `kind` is a constructor of configurations."""
    from rspmn.learn import LearnConfig, learn_rspmn

    config = getattr(LearnConfig, kind)() if kind else LearnConfig(**options)
    return learn_rspmn(log(name), config)[0].policy(domain(name).horizon)


def windows(source: object) -> object:
    """Count the windows of a log of FrozenLake."""
    import rspmn

    return rspmn.windows(source, domain("FrozenLake").schema, terminated="terminated")


def episodes(path: str) -> object:
    """Read the episodes of such a log."""
    from rspmn import Episodes

    return Episodes.from_long(path, domain("FrozenLake").schema, terminated="terminated")


def learn_large(path: str) -> object:
    """Learn from a file, the structure from a sample of its windows."""
    from rspmn import store_windows
    from rspmn.learn import LearnConfig, learn_rspmn

    with store_windows(path, domain("Elevators").schema, terminated="terminated") as stored:
        return learn_rspmn(stored, LearnConfig(max_windows=1000))


def fit_again(learned: Any) -> object:
    """Estimate the weights of a model anew."""
    from rspmn.learn import refit

    return refit(learned, log("Elevators"))


def save_and_load(learned: Any) -> object:
    """Write a model and read it."""
    learned.save(folder / "again.json")
    return type(learned).load(folder / "again.json")


def learn_decisions() -> object:
    """Learn from a table of past decisions."""
    from rspmn.learn import learn_spmn

    return learn_spmn(*decisions())


def learning(name: str, kind: str = "", **options: Any) -> Workload:
    """Return the workload of `learn`."""
    return nothing, lambda _: learn(name, kind, **options)


WORKLOADS: dict[str, Workload] = {
    "import rspmn": (nothing, lambda _: import_module("rspmn")),
    "import learn": (nothing, lambda _: import_module("rspmn.learn")),
    **{f"learn {name}": learning(name) for name in DOMAINS},
    "learn Elevators, counts": learning("Elevators", successors="counts"),
    "learn FrozenLake, paper": learning("FrozenLake", "paper"),
    "learn Elevators, em": learning("Elevators", em_passes=2),
    "windows of episodes": (lambda: log("FrozenLake"), windows),
    "windows of Parquet": (lambda: file("parquet", "FrozenLake"), windows),
    "windows of shuffled Parquet": (lambda: file("parquet", "FrozenLake", "hash(time)"), windows),
    "windows of CSV": (lambda: file("csv", "FrozenLake"), windows),
    "Episodes of CSV": (lambda: file("csv", "FrozenLake"), episodes),
    "windows of a small table": (small_table, windows),
    "large log": (lambda: file("parquet", "Elevators"), learn_large),
    "refit": (lambda: model("Elevators"), fit_again),
    "meu": (model, lambda m: m.meu(horizon=50)),
    "values, long horizon": (model, lambda m: m.values(1000)),
    "policy, no horizon": (model, lambda m: m.policy().act(states()[0])),
    "policy and table": (model, lambda m: m.policy(50).table()),
    "act, new states": (policy, act),
    "act": (lambda: asked(policy()), act),
    "action_values": (policy, lambda p: [p.action_values(s) for s in states()]),
    "act_many": (policy, lambda p: p.act_many(many_states())),
    "log_likelihood": (lambda: model("Elevators"), lambda m: m.log_likelihood(log("Elevators"))),
    "sample": (model, lambda m: m.sample(1000, 50, 0)),
    "sample with a policy": (model, lambda m: m.sample(1000, 50, 0, m.policy(50))),
    "save and load": (model, save_and_load),
    "learn_spmn": (nothing, lambda _: learn_decisions()),
}


# ---- measuring -------------------------------------------------------------------


def measure(name: str) -> Cost:
    """Return what a workload takes in this process; its first run counts only if it imports."""
    make, run = WORKLOADS[name]
    spent: list[float] = []
    begun, least = time.process_time(), 1 if name.startswith("import") else 3
    while len(spent) < least or (least > 1 and time.process_time() - begun < SECONDS):
        given = make()
        clock = time.process_time()
        run(given)
        spent.append(time.process_time() - clock)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Cost(min(spent[-1:] + spent[1:]), peak)


def measured_by(source: Path, name: str, of_paper: float) -> Cost:
    """Return what a workload takes in a process that imports rspmn from a folder."""
    call = [sys.executable, __file__, "--one", name, "--share", str(of_paper)]
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(call, env=environment, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name}, {source}:\n{done.stderr}")
    return Cost(*json.loads(done.stdout))


def checked_out(commit: str, target: Path) -> Path:
    """Write the package as it was at a commit into a folder; return the folder to import from."""
    packed = subprocess.run(
        ["git", "archive", commit, "src"], cwd=ROOT, check=True, stdout=subprocess.PIPE
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(target, filter="data")
    return target / "src"


def table_row(name: str, pairs: list[tuple[Cost, Cost]]) -> str:
    """Return a line of the table, given costs of both (old, new)."""
    cpu = sorted(new.seconds / max(old.seconds, 1e-6) for old, new in pairs)
    memory = median(new.peak / old.peak for old, new in pairs)
    milliseconds = 1e3 * median(new.seconds for _, new in pairs)
    ratios = f"{median(cpu):.2f} ({cpu[0]:.2f} to {cpu[-1]:.2f}) | {memory:.2f}"
    return f"| {name} | {ratios} | {milliseconds:.3g} | {len(pairs)} |"


def summary(lines: list[str]) -> str:
    """Return the medians of some lines of the table."""
    cells = [line.split(" | ") for line in lines]
    cpu, memory = (median(float(c[k].split()[0]) for c in cells) for k in (1, 2))
    return f"The median of all is {cpu:.2f} in CPU time and {memory:.2f} in memory."


def page(old: str, lines: dict[str, str]) -> str:
    """Return the page, given lines of the table by workload."""
    rows = [lines[name] for name in WORKLOADS if name in lines]
    return "\n".join([
        "# CPU time and memory, beside an earlier commit", "",
        f"Made by `python benchmarks/ratios.py {old} -o docs`, in parts with `--only`.",
        ABOUT.format(old=old),
        "| workload | CPU, ratio (least to most) | memory | ms | rounds |", "|---|---|---|---|---|",
        *rows, "", summary(rows), "",
    ])  # fmt: skip


def main() -> None:
    """Measure, print, and write a page if one is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", nargs="?", default=BEFORE, help=f"a commit, default {BEFORE}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=list(WORKLOADS), default=list(WORKLOADS))
    parser.add_argument("--share", type=float, default=1.0, help="of the episodes, default 1")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", type=Path, help="the folder to write a page to")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        if options.one:
            globals().update(folder=Path(temporary), share=options.share)
            print(json.dumps(measure(options.one)))
            return
        trees = checked_out(options.old, Path(temporary)), ROOT / "src"
        for tree in trees:  # as if each was used before: nothing is compiled while it is measured
            subprocess.run([sys.executable, "-m", "compileall", "-q", tree], check=True)
        path = None if options.output is None else options.output / "ratio_figures.md"
        before = path.read_text().splitlines() if path is not None and path.exists() else []
        named = {name: line for line in before for name in WORKLOADS if f"| {name} |" in line}
        lines = named if len(options.only) < len(WORKLOADS) else {}
        for name in options.only:
            measured = [
                [measured_by(tree, name, options.share) for tree in trees]
                for _ in range(options.rounds)
            ]
            lines[name] = table_row(name, [(old, new) for old, new in measured])
            print(lines[name], flush=True)
            if path is not None:
                path.write_text(page(options.old, lines))
    print(summary([lines[name] for name in options.only]))


if __name__ == "__main__":
    main()
