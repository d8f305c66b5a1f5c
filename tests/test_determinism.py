"""The same log gives the same bytes: in every process, from every engine, in any order of rows."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from effort import SOAK, mostly_soak
from model_bytes import KINDS, WAYS, digest

#: Environments of processes; "one core" leaves DuckDB and OpenBLAS one thread.
PROCESSES = {
    "hash seed 1": {"PYTHONHASHSEED": "1"},
    "hash seed 2, two threads": {"PYTHONHASHSEED": "2", "OPENBLAS_NUM_THREADS": "2"},
    "one core": {"PYTHONHASHSEED": "3", "OPENBLAS_NUM_THREADS": "1"},
}


@cache
def expected(kind: str) -> str:
    return digest(kind, "polars")


@pytest.mark.parametrize("way", mostly_soak(WAYS, ["pandas reversed", "parquet files"]))
@pytest.mark.parametrize("kind", mostly_soak(KINDS, ["finite", "numbers"]))
def test_the_same_bytes_from_every_engine(kind: str, way: str) -> None:
    assert digest(kind, way) == expected(kind)


@pytest.mark.parametrize("process", mostly_soak(PROCESSES, ["hash seed 1"]))
@pytest.mark.parametrize("kind", mostly_soak(KINDS, ["products"]))
def test_the_same_bytes_in_every_process(kind: str, process: str) -> None:
    """Sets of Python and sums of threads have no say."""
    script = Path(__file__).with_name("model_bytes.py")
    command = [sys.executable, str(script), kind, "parquet files"]
    if process == "one core" and hasattr(os, "sched_setaffinity"):
        command = ["taskset", "-c", str(min(os.sched_getaffinity(0))), *command]
    found = subprocess.run(
        command, env=os.environ | PROCESSES[process], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == expected(kind)


def test_every_kind_has_bytes_of_its_own() -> None:
    kinds = list(KINDS) if SOAK else ["finite", "numbers"]
    assert len({expected(kind) for kind in kinds}) == len(kinds)
