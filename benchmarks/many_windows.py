"""20 million distinct windows inside a gigabyte: structure from a sample, parameters from all.

Ten state variables of three to six values each, drawn at random: hardly any step occurs twice. The
utility depends on the first of them and the action alone: it is 1 if they match, so the optimum of
three steps is 3.

    python benchmarks/many_windows.py [STEPS]
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

import duckdb

import rspmn
from rspmn import Schema
from rspmn.learn import LearnConfig, learn_rspmn

VARIABLES, FILES, EPISODE = 10, 4, 20
#: What DuckDB may take; the rest of the gigabyte is Python's.
MEMORY = "400MB"


def make(folder: Path, steps: int) -> None:
    """Write files of random states."""
    connection = duckdb.connect()
    connection.execute("SET memory_limit = '1GB'")
    episodes = steps // EPISODE // FILES
    for k in range(FILES):
        row = f"e * {EPISODE} + t + {k * episodes * EPISODE}"
        values = ", ".join(
            f"(hash({row} + {j} * 1000003) % {3 + j % 4})::INTEGER AS x{j}"
            for j in range(VARIABLES)
        )
        connection.execute(f"""
            COPY (
                SELECT *, CASE WHEN x0 = action THEN 1.0 ELSE 0.0 END AS reward FROM (
                    SELECT e + {k * episodes} AS episode, t AS time, {values},
                        (hash({row} + 7) % 4)::INTEGER AS action
                    FROM range({episodes}) a(e), range({EPISODE}) b(t) ORDER BY e, t))
            TO '{folder / f"part{k}.parquet"}' (FORMAT parquet)
        """)


def main() -> None:
    """Learn from them, and print time and memory."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000_000
    names = [f"x{j}" for j in range(VARIABLES)]
    schema = Schema([names, ["action"]], ["action"], "reward")
    with tempfile.TemporaryDirectory(prefix="rspmn-many-") as scratch:
        make(Path(scratch), steps)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        clock = time.perf_counter()
        stored = rspmn.store_windows(
            f"{scratch}/*.parquet", schema, ending="cut", memory_limit=MEMORY
        )
        with stored as windows:
            counted = time.perf_counter() - clock
            model, info = learn_rspmn(windows, LearnConfig(max_windows=50_000))
            number = len(windows)
        seconds = time.perf_counter() - clock
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    assert info.sample is not None
    print(f"{number:,} distinct windows of {info.sample.steps:,} steps")
    print(f"counted in {counted:.0f} s, learned in {seconds - counted:.0f} s: {info.sample}")
    print(f"MEU of three steps {float(model.meu(horizon=3)):.4f} (3 is right)")
    print(f"peak memory {peak:.0f} MB (making the files took {before:.0f} MB), target 1000")


if __name__ == "__main__":
    main()
