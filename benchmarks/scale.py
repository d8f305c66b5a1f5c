"""From files to a policy at 1, 10 and 100 million steps, beside what a bare GROUP BY takes.

The limit is what DuckDB needs to group rows that already hold the next state: no row has to find
the one after it, nothing is checked, nothing is learned. Both read files of one format from the
same disk in the same run, in turn, each in a process of its own; medians of seven, and the peak
memory of ours. What it takes to start a process and to import packages is in neither, except in the
last column: the processor time of both processes as a whole, where that of the query imports DuckDB
alone.

    python benchmarks/scale.py [docs] [--steps 1000000 ...]
    python benchmarks/scale.py [docs] --steps 1000000 --formats parquet csv

The first writes scale_figures.md, of Parquet; the second scale_formats.md.
"""

import argparse
import itertools
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

SIZES = (1_000_000, 10_000_000, 100_000_000)
FILES, RUNS = 8, 7
#: An episode of a random policy on FrozenLake has so many steps, if it is not cut.
STEPS_OF_EPISODE = 7.65
EXPLAINED = """To start a process and to import packages is in neither time, except in the last
column: the processor time of the whole process that goes from file to policy, over that of a
process that imports DuckDB alone and groups.
"""
TARGETS = {"ratio": 2.0, "memory": 2000}

START = """
import json, sys, time
import duckdb, numpy.ma, scipy.sparse.csgraph, scipy.special
import rspmn, rspmn.infer.policy, rspmn.infer.act_many, rspmn.learn.successors.factored
import narwhals.selectors, narwhals._duckdb.dataframe, narwhals._duckdb.namespace
import rspmn.data.sources.count_windows, rspmn.data.sources.duckdb
from rspmn.learn import learn_rspmn
from rspmn.schema import Schema
def now():
    return time.perf_counter(), time.process_time()
def since(start):
    return [after - before for after, before in zip(now(), start)]
"""
OURS = (
    START
    + """
start = now()
schema = Schema.load(sys.argv[2])
windows = rspmn.windows(sys.argv[1], schema, terminated="terminated")
counted, _ = since(start)
model, info = learn_rspmn(windows)
policy = model.policy(horizon=100)
policy.table()
taken = since(start)
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
peak = int(status["VmHWM"].split()[0]) / 1024  # of this program alone; getrusage has its parent's
print(json.dumps([*taken, counted, peak, info.steps, float(model.meu(horizon=100))]))
"""
)
QUERY = """
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
start = now()
connection.execute(
    "SELECT cell, action, reward, terminated, next_cell, count(*) "
    f"FROM '{sys.argv[1]}' GROUP BY ALL"
).fetchall()
print(json.dumps(since(start)))
"""
BARE = START + QUERY
#: The same in a process that imports nothing else.
ALONE = "import duckdb, json, sys\nnow, since = list, list\n" + QUERY


def run(code: str, *arguments: str) -> tuple[list[float], float]:
    """Run code in a process of its own; return the numbers it prints, and its processor time."""
    command = [sys.executable, "-c", code, *arguments]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(printed), spent


def make(folder: Path, steps: int, form: str) -> None:
    """Write a log by `rspmn generate`, and the same rows with the next state beside each."""
    folder.mkdir()
    episodes = str(int(steps / STEPS_OF_EPISODE))
    command = ["generate", "FrozenLake", "--episodes", episodes, "--steps", "100", "--files",
               str(FILES), "--schema", str(folder / "schema.toml"),
               "-o", str(folder / f"log.{form}")]  # fmt: skip
    subprocess.run([sys.executable, "-m", "rspmn", *command], check=True, capture_output=True)
    two = folder / "two"
    two.mkdir()
    for path in sorted(folder.glob(f"log-*.{form}")):
        query = f"""
            SELECT * EXCLUDE (e, n), CASE WHEN e = episode THEN n END AS next_cell FROM (
                SELECT *, lead(cell) OVER () AS n, lead(episode) OVER () AS e
                FROM '{path}')
        """
        duckdb.sql(f"COPY ({query}) TO '{two / path.name}' (FORMAT {form})")


def measure(folder: Path, runs: int, form: str) -> dict[str, float]:
    """Run both in turn; return medians, of ratios too: a busy machine slows both down."""
    bare, ours, whole = [], [], []
    two, log = str(folder / "two" / f"*.{form}"), str(folder / f"log-*.{form}")
    for _ in range(runs):
        bare.append(run(BARE, two)[0])
        found, all_of_ours = run(OURS, log, str(folder / "schema.toml"))
        ours.append(found)
        whole.append(all_of_ours / run(ALONE, two)[1])
    seconds, _, counted, peak, steps, meu = map(statistics.median, zip(*ours, strict=True))
    of_time, of_work = (
        statistics.median(our[k] / its[k] for our, its in zip(ours, bare, strict=True))
        for k in (0, 1)
    )
    return {
        "steps": steps, "seconds": seconds, "counting": counted,
        "bare": statistics.median(its[0] for its in bare), "ratio": of_time, "work": of_work,
        "memory": peak, "meu": meu, "whole": statistics.median(whole),
    }  # fmt: skip


def table(rows: list[dict[str, float]], forms: list[str]) -> str:
    """Return the figures as Markdown."""
    lines = [
        "| format | steps | file to policy | of it counting | bare GROUP BY | ratio | ratio in "
        "processor time | peak memory | steps a second | MEU, 100 steps | of whole processes |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {form} | {r['steps']:,.0f} | {r['seconds']:.2f} s | {r['counting']:.2f} s | "
        f"{r['bare']:.2f} s | {r['ratio']:.2f} | {r['work']:.2f} | {r['memory']:.0f} MB | "
        f"{r['steps'] / r['seconds'] / 1e6:.1f} M | {r['meu']:.4f} | {r['whole']:.2f} |"
        for r, form in zip(rows, forms, strict=True)
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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", nargs="?", type=Path, help="where to write table and plot")
    parser.add_argument("--steps", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--formats", nargs="+", default=["parquet"], choices=["parquet", "csv"])
    parser.add_argument("--runs", type=int, default=RUNS)
    asked = parser.parse_args()
    rows, forms = [], []
    with tempfile.TemporaryDirectory(prefix="rspmn-scale-") as scratch:
        for size, form in itertools.product(asked.steps, asked.formats):
            made = Path(scratch) / f"{form}-{size}"
            make(made, size, form)
            rows.append(measure(made, asked.runs, form))
            forms.append(form)
            print(table(rows[-1:], [form]).splitlines()[-1], flush=True)
    print(table(rows, forms))
    last = rows[-1]
    for name, target in TARGETS.items():
        verdict = "met" if last[name] <= target else "MISSED"
        print(f"{name}, {last['steps']:,.0f} steps: {last[name]:.2f}, target {target:g}: {verdict}")
    if asked.folder:
        command = " ".join(["python", *sys.argv])
        text = f"# Figures of scale\n\nMade by `{command}`.\n{EXPLAINED}\n{table(rows, forms)}\n"
        if asked.formats == ["parquet"]:
            (asked.folder / "scale_figures.md").write_text(text)
            plot(rows, asked.folder / "scale.svg")
        else:
            (asked.folder / "scale_formats.md").write_text(text)


if __name__ == "__main__":
    main()
