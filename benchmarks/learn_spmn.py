"""How fast LearnSPMN is, as ratios within one run. Run it with `make bench`."""

import argparse
import time
import tracemalloc
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from rspmn import Schema
from rspmn.learn import GTest, learn_spmn
from rspmn.learn.structure.rows import read_rows


def timed(run: Callable[[], object], repeats: int = 5) -> float:
    """Return the median time of some runs, after one that does not count."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return median(times)


def decisions(
    rows: int, columns: int, rng: np.random.Generator
) -> tuple[dict[str, object], Schema]:
    """Make a table of discrete columns: context, two decisions with a result between, a utility."""
    context = [f"x{k}" for k in range(columns - 4)]
    table: dict[str, Any] = {name: rng.integers(0, 3, rows) for name in context}
    table["d"] = rng.integers(0, 2, rows)
    table["r"] = (rng.random(rows) < 0.2 + 0.5 * (table["d"] == table["x0"])).astype(int)
    table["e"] = rng.integers(0, 3, rows)
    table["u"] = 10.0 * (table["e"] == table["r"]) - 3.0 * table["d"] + (table["x1"] == table["e"])
    return table, Schema([context, ["d"], ["r"], ["e"]], ["d", "e"], "u")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the largest table")
    most = parser.parse_args().rows
    rng = np.random.default_rng(0)

    rows_of_table = min(most, 100_000)
    table, schema = decisions(rows_of_table, 7, rng)
    raw = np.column_stack([np.asarray(table[n], dtype=np.int64) for n in schema.variables])
    unique = timed(lambda: np.unique(raw, axis=0))
    learn = timed(lambda: learn_spmn(table, schema))
    print(f"{rows_of_table} x 7: learn {learn:.3f} s, numpy unique(axis=0) {unique:.3f} s")
    print(f"  ratio {learn / unique:.2f} (target < 10)")

    names = [f"x{k}" for k in range(200)]
    wide = {**{n: rng.integers(0, 2, 2000) for n in names}, "u": np.zeros(2000)}
    rows = read_rows(wide, Schema([names], [], "u"), bins=10)[0]
    strata = np.zeros(len(rows), dtype=np.int64)
    pairs = timed(lambda: GTest()(rows, names, names, strata, rng))
    print(f"40,000 pair tests on {len(rows)} rows: {pairs:.3f} s (target < 0.5)")

    big, schema = decisions(most, 20, rng)
    raw_bytes = sum(np.asarray(column).nbytes for column in big.values())
    tracemalloc.start()
    start = time.perf_counter()
    learn_spmn(big, schema)
    seconds = time.perf_counter() - start
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(
        f"1M x 20: {seconds:.1f} s, peak {peak / 1e6:.0f} MB for {raw_bytes / 1e6:.0f} MB of data"
    )
    print(f"  ratio {peak / raw_bytes:.2f} (target < 3)")


if __name__ == "__main__":
    main()
