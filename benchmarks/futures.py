"""Counts and factored futures beside a table and the optimum, by episodes and seeds.

`python benchmarks/futures.py` prints the short form, on three seeds. `--seeds 20 -o docs` writes
docs/futures_figures.md and docs/futures.svg, from which the text of docs/factored_futures.md
quotes; that takes about a quarter of an hour on two cores, and `make figures` does it.
"""

import argparse
import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from multiprocessing import Pool
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from tqdm import tqdm

from rspmn.data.windows import Windows
from rspmn.envs.domains import WORLDS
from rspmn.envs.mdp import MDP
from rspmn.evaluate import Tabular, predictions, true_value
from rspmn.learn import LearnConfig, learn_rspmn

#: How many episodes besides 100, 1,000, 10,000 and the paper's number.
FURTHER = {
    "GridUniverse": [30],
    "Taxi": [300],
    "CrossingTraffic": [300],
    "SysAdmin": [30, 300],
}
#: So many fresh episodes are predicted.
FRESH = 2000
WAYS = "table", "counts", "factored"


@dataclass(frozen=True)
class Task:
    """One log."""

    domain: str
    episodes: int
    seed: int


@dataclass(frozen=True)
class Result:
    """What was learned from one log, by one way."""

    task: Task
    way: str
    meu: float
    worth: float  # the exact value of the policy
    seconds: float = 0.0
    fresh: float = 0.0  # log-likelihood of next states in fresh episodes, best smoothed
    strength: float = 0.0
    extrapolated: float = 0.0  # the exact value of the policy that may do what was never tried


def world(name: str) -> MDP:
    """Return a domain by name."""
    return WORLDS[name]()


def steps(name: str) -> int:
    """Return the horizon that values are for."""
    return 100 if name == "FrozenLake" else world(name).horizon


def sizes(name: str, most: int) -> list[int]:
    """Return the numbers of episodes, the paper's being the largest."""
    paper = [] if name == "SysAdmin" else [world(name).episodes]
    return sorted({n for n in (100, 1000, 10_000, *FURTHER.get(name, []), *paper) if n <= most})


def run(task: Task) -> list[Result]:
    """Learn from one log in all ways."""
    mdp, horizon = world(task.domain), steps(task.domain)
    log = mdp.generate(task.episodes, mdp.horizon, task.seed, "final")
    fresh = mdp.generate(FRESH, mdp.horizon, 10_000 + task.seed, "final")
    table = Tabular.fit(log)
    worth = mdp.evaluate(table.policy_for(mdp, horizon), horizon)
    found = [Result(task, "table", table.meu(horizon), worth)]
    windows = Windows.from_episodes(log)
    for way in ("counts", "factored"):
        start = perf_counter()
        model, info = learn_rspmn(windows, LearnConfig(successors=way))
        seconds = perf_counter() - start
        meu = float(model.meu(horizon=horizon))
        worth = true_value(mdp, model.policy(horizon), horizon)
        extrapolated = worth
        if model.untried is not None:
            extrapolated = true_value(mdp, model.policy(horizon, offer="all"), horizon)
        likely = predictions(model, fresh).best_log_likelihood()
        strength = info.future.strength if info.future else 0.0
        found.append(Result(task, way, meu, worth, seconds, likely, strength, extrapolated))
    return found


def main() -> None:
    """Print or write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--most", type=int, default=10**9, help="leave out larger logs")
    parser.add_argument("--domains", nargs="+", default=[*WORLDS])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("-o", "--output", type=Path, help="a folder to write to")
    arguments = parser.parse_args()
    tasks = [
        Task(name, episodes, seed)
        for name in arguments.domains
        for episodes in sizes(name, arguments.most)
        for seed in range(arguments.seeds)
    ]
    tasks.sort(key=lambda task: -task.episodes)
    with Pool(arguments.jobs) as pool:
        parts = tqdm(pool.imap_unordered(run, tasks), total=len(tasks), disable=None)
        results = [result for part in parts for result in part]
    text = figures(results, arguments.domains, arguments.seeds)
    print(text)
    if arguments.output:
        name = arguments.output / "futures_figures.md"
        name.write_text(INTRODUCTION + text, encoding="utf-8")
        plot(results, arguments.domains, arguments.output / "futures.svg")


INTRODUCTION = """# Factored futures: figures

Logs by a random policy (Taxi's is better than random), recorded as Gymnasium does: ends are
flagged, and the state after the last step is kept. Each figure is the mean over logs, ± one
standard error. The true value is that of the learned policy in the domain itself, computed
exactly; "least" is the least of the factored ones. "Extrapolated" is that of the policy which may
also do what was never tried in a state. Fresh log-likelihood is that of the next states in 2,000
other episodes, per step, each way with the smoothing that is best for it. Seconds are of learning
from windows, medians. Made by `make figures`; `docs/factored_futures.md` says what is measured.

"""

HEAD = (
    "| domain, episodes | optimum | table: MEU / true value | counts: MEU / true value | factored: "
    "MEU / true value | least | extrapolated | κ, median | fresh log-likelihood: counts / factored "
    "| seconds: counts / factored |"
)


def figures(results: Iterable[Result], domains: list[str], seeds: int) -> str:
    """Return the table."""
    lines = [HEAD, "|" + "---|" * (HEAD.count("|") - 1)]
    by_case = grouped(results)
    for name in domains:
        numbers = sorted({e for n, e in by_case if n == name})
        lines += [line(name, episodes, by_case[name, episodes]) for episodes in numbers]
    return f"{seeds} seeds.\n\n" + "\n".join(lines) + "\n"


def grouped(results: Iterable[Result]) -> dict[tuple[str, int], dict[str, list[Result]]]:
    """Return the results by domain and episodes, and by way."""
    found: dict[tuple[str, int], dict[str, list[Result]]] = defaultdict(lambda: defaultdict(list))
    for result in sorted(results, key=lambda r: r.task.seed):
        found[result.task.domain, result.task.episodes][result.way].append(result)
    return found


def line(name: str, episodes: int, ways: dict[str, list[Result]]) -> str:
    """Return one line of the table."""
    optimum = world(name).optimum(steps(name))
    cells = [f"{name} {episodes}", f"{optimum:.4f}"]
    for way in WAYS:
        found = ways[way]
        worths = [r.worth for r in found]
        error = np.std(worths, ddof=1) / len(worths) ** 0.5 if len(worths) > 1 else 0.0
        cells.append(f"{mean(found, 'meu'):.4f} / {np.mean(worths):.4f} ± {error:.4f}")
    factored, by_counts = ways["factored"], ways["counts"]
    cells.append(f"{min(r.worth for r in factored):.4f}")
    cells.append(f"{mean(factored, 'extrapolated'):.4f}")
    cells.append(f"{np.median([r.strength for r in factored]):g}")
    cells.append(f"{mean(by_counts, 'fresh'):.4f} / {mean(factored, 'fresh'):.4f}")
    seconds = [np.median([r.seconds for r in way]) for way in (by_counts, factored)]
    cells.append(f"{seconds[0]:.3f} / {seconds[1]:.3f}")
    return "| " + " | ".join(cells) + " |"


def mean(results: list[Result], field: str) -> float:
    """Return the mean of a field."""
    return float(np.mean([getattr(result, field) for result in results]))


def plot(results: list[Result], domains: list[str], path: Path) -> None:
    """Draw value, and distance of MEU and optimum, against the number of episodes."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "rspmn"
    from matplotlib import pyplot as plt

    by_case = grouped(results)
    wide = min(4, len(domains))
    rows = -(-len(domains) // wide)
    figure, axes = plt.subplots(2 * rows, wide, figsize=(3.2 * wide, 5.2 * rows), squeeze=False)
    style: dict[str, dict[str, Any]] = {
        "table": {"color": "#999999", "linestyle": "--", "marker": "s", "label": "table"},
        "counts": {"color": "#d55e00", "marker": "o", "label": "RSPMN, counts"},
        "factored": {"color": "#0072b2", "marker": "^", "label": "RSPMN, factored"},
    }
    for place, name in enumerate(domains):
        row, column = divmod(place, wide)
        numbers = sorted(e for n, e in by_case if n == name)
        optimum = world(name).optimum(steps(name))
        value, gap = axes[2 * row, column], axes[2 * row + 1, column]
        for way in WAYS:
            cases = [by_case[name, e][way] for e in numbers]
            worths = [[r.worth for r in case] for case in cases]
            errors = [np.std(w, ddof=1) / len(w) ** 0.5 if len(w) > 1 else 0.0 for w in worths]
            value.errorbar(numbers, [np.mean(w) for w in worths], errors, ms=4, **style[way])
            gaps = [np.mean([abs(r.meu - optimum) for r in case]) for case in cases]
            gap.plot(numbers, np.maximum(gaps, 1e-4), ms=4, **style[way])
        value.axhline(optimum, color="black", linewidth=0.8, label="optimum, exact")
        value.set(title=f"{name}, {steps(name)} steps", xscale="log")
        gap.set(xlabel="episodes", xscale="log", yscale="log")
        if column == 0:
            value.set_ylabel("true value of the policy")
            gap.set_ylabel("|MEU - optimum|, at least .0001")
    for place in range(len(domains), rows * wide):
        for row in (2 * (place // wide), 2 * (place // wide) + 1):
            axes[row, place % wide].axis("off")
    axes[0, 0].legend(fontsize=8, loc="lower right")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
