"""From files to a policy at 1, 10 and 100 million steps, beside what a bare GROUP BY takes.

The limit is what DuckDB needs to group rows that already hold the next state: no row has to find
the one after it, nothing is checked, nothing is learned. Both read Parquet from the same disk in
the same run, each in a process of its own, all packages imported before the clock starts; medians
of five, and the peak memory of ours.

    python benchmarks/scale.py [docs]
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

SIZES = (1_000_000, 10_000_000, 100_000_000)
FILES = 8
#: An episode of a random policy on FrozenLake has so many steps, if it is not cut.
STEPS_OF_EPISODE = 7.65
TARGETS = {"ratio": 2.0, "memory": 2000}

OURS = """
import json, resource, sys, time
import duckdb, numpy.ma, scipy.sparse.csgraph, scipy.special
import rspmn
from rspmn.learn import learn_rspmn
from rspmn.schema import Schema
clock = time.perf_counter()
schema = Schema.load(sys.argv[2])
windows = rspmn.windows(sys.argv[1], schema, terminated="terminated")
counted = time.perf_counter() - clock
model, info = learn_rspmn(windows)
policy = model.policy(horizon=100)
policy.table()
seconds = time.perf_counter() - clock
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([seconds, counted, peak, info.steps, float(model.meu(horizon=100))]))
"""
BARE = """
import duckdb, sys, time
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
clock = time.perf_counter()
connection.execute(
    "SELECT cell, action, reward, terminated, next_cell, count(*) "
    f"FROM read_parquet('{sys.argv[1]}') GROUP BY ALL"
).fetchall()
print(time.perf_counter() - clock)
"""


def run(code: str, *arguments: str) -> str:
    """Run code in a process of its own; return what it prints."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def make(folder: Path, steps: int) -> None:
    """Write a log by `rspmn generate`, and the same rows with the next state beside each."""
    folder.mkdir()
    episodes = str(int(steps / STEPS_OF_EPISODE))
    command = ["generate", "FrozenLake", "--episodes", episodes, "--steps", "100", "--files",
               str(FILES), "--schema", str(folder / "schema.toml"),
               "-o", str(folder / "log.parquet")]  # fmt: skip
    subprocess.run([sys.executable, "-m", "rspmn", *command], check=True, capture_output=True)
    two = folder / "two"
    two.mkdir()
    for path in sorted(folder.glob("log-*.parquet")):
        query = f"""
            SELECT * EXCLUDE (e, n), CASE WHEN e = episode THEN n END AS next_cell FROM (
                SELECT *, lead(cell) OVER () AS n, lead(episode) OVER () AS e
                FROM read_parquet('{path}'))
        """
        duckdb.sql(f"COPY ({query}) TO '{two / path.name}' (FORMAT parquet)")


def measure(folder: Path) -> dict[str, float]:
    """Return medians of five runs."""
    ours, bare = [], []
    for _ in range(5):
        bare.append(float(run(BARE, str(folder / "two" / "*.parquet"))))
        found = run(OURS, str(folder / "log-*.parquet"), str(folder / "schema.toml"))
        ours.append(json.loads(found))
    medians = [statistics.median(part) for part in zip(*ours, strict=True)]
    seconds, counted, peak, steps, meu = medians
    limit = statistics.median(bare)
    return {
        "steps": steps, "seconds": seconds, "counting": counted, "bare": limit,
        "ratio": seconds / limit, "memory": peak, "meu": meu,
    }  # fmt: skip


def table(rows: list[dict[str, float]]) -> str:
    """Return the figures as Markdown."""
    lines = [
        "| steps | file to policy | of it counting | bare GROUP BY | ratio | peak memory | "
        "steps a second | MEU, 100 steps |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {r['steps']:,.0f} | {r['seconds']:.2f} s | {r['counting']:.2f} s | {r['bare']:.2f} s | "
        f"{r['ratio']:.2f} | {r['memory']:.0f} MB | {r['steps'] / r['seconds'] / 1e6:.1f} M | "
        f"{r['meu']:.4f} |"
        for r in rows
    ]
    return "\n".join(lines)


def plot(rows: list[dict[str, float]], path: Path) -> None:
    """Draw time over steps, both axes logarithmic."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "rspmn"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    steps = [r["steps"] for r in rows]
    for name, label in (("seconds", "file to policy"), ("bare", "bare GROUP BY")):
        axes.loglog(steps, [r[name] for r in rows], marker="o", label=label)
    axes.set(xlabel="steps", ylabel="seconds", title="From Parquet files to a policy, two cores")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Measure; write table and plot if a folder is named."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="rspmn-scale-") as scratch:
        for size in SIZES:
            folder = Path(scratch) / str(size)
            make(folder, size)
            rows.append(measure(folder))
            print(table(rows[-1:]).splitlines()[-1], flush=True)
    print(table(rows))
    last = rows[-1]
    for name, target in TARGETS.items():
        verdict = "met" if last[name] <= target else "MISSED"
        print(f"{name}, {last['steps']:,.0f} steps: {last[name]:.2f}, target {target:g}: {verdict}")
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
        (folder / "scale_figures.md").write_text(f"# Figures of scale\n\n{table(rows)}\n")
        plot(rows, folder / "scale.svg")


if __name__ == "__main__":
    main()
