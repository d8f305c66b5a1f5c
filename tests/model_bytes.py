"""The bytes of learned models: of every kind, from a log that is held in every way.

    python tests/model_bytes.py KIND WAY

prints a digest. Whatever the way, the process, its hash seed and its threads are, it is the same.
"""

import hashlib
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from number_worlds import corridor
from rspmn import Schema, windows
from rspmn.data.episodes import Episodes
from rspmn.envs.domains import DOMAINS
from rspmn.envs.inventory import inventory
from rspmn.envs.sys_admin import sys_admin
from rspmn.learn import learn_rspmn, learn_spmn

Table = dict[str, list[Any]]


def _numbers() -> tuple[Table, Schema]:
    table, schema = corridor(60, 0)
    return table, schema.with_log(terminated="over")


def _single_shot() -> tuple[Table, Schema]:
    """Return decisions in situations of two variables."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 3, 400), rng.choice(["p", "q"], 400)
    a = rng.choice(["l", "r"], 400)
    u = (x == 1) * (a == "r") + (y == "p") * 0.5 + rng.integers(0, 2, 400) * 0.25
    table = {"x": x.tolist(), "y": y.tolist(), "a": a.tolist(), "u": u.tolist()}
    return table, Schema([["x", "y"], ["a"]], ["a"], "u")


def _of(log: Episodes) -> tuple[Table, Schema]:
    return log.to_long(), log.schema


KINDS: dict[str, Callable[[], tuple[Table, Schema]]] = {
    "finite": lambda: _of(DOMAINS["FrozenLake"]().generate(200, 20, 0, "final")),
    "products": lambda: _of(sys_admin(4).generate(60, 10, 0, "final")),
    "moves": lambda: _of(inventory(most=4, units=1).generate(60, 8, 0, "final")),
    "time limit": lambda: _of(DOMAINS["FrozenLake"]().generate(200, 6, 0)),
    "numbers": _numbers,
    "single shot": _single_shot,
}


def _split(frame: pl.DataFrame, folder: Path) -> str:
    """Write rows in another order to several files."""
    mixed = frame.sample(fraction=1, shuffle=True, seed=1)
    cuts = [0, len(frame) // 7, len(frame) // 2, len(frame)]
    for k in range(3):
        mixed[cuts[k] : cuts[k + 1]].write_parquet(folder / f"part-{k}.parquet")
    return str(folder / "part-*.parquet")


def _written(frame: pl.DataFrame, folder: Path) -> Path:
    frame.write_csv(folder / "log.csv")
    return folder / "log.csv"


#: How a table is held.
WAYS: dict[str, Callable[[pl.DataFrame, Path], Any]] = {
    "polars": lambda frame, _: frame,
    "polars shuffled": lambda frame, _: frame.sample(fraction=1, shuffle=True, seed=2),
    "pandas": lambda frame, _: pd.DataFrame(frame.to_dict(as_series=False)),
    "pandas reversed": lambda frame, _: pd.DataFrame(frame.reverse().to_dict(as_series=False)),
    "pyarrow": lambda frame, _: pa.table(frame.to_dict(as_series=False)),
    "duckdb": lambda frame, _: duckdb.from_arrow(pa.table(frame.to_dict(as_series=False))),
    "csv": _written,
    "parquet files": _split,
}


def digest(kind: str, way: str) -> str:
    """Learn a model from a log that is held in some way; return a digest of its file."""
    table, schema = KINDS[kind]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = WAYS[way](pl.DataFrame(table, strict=False), folder)
        if kind == "single shot":
            model: Any = learn_spmn(source, schema)[0]
        else:
            model = learn_rspmn(windows(source, schema))[0]
        model.save(folder / "model.json")
        return hashlib.sha256((folder / "model.json").read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.stdout.write(digest(*sys.argv[1:]) + "\n")
