"""The same log on Spark: the same windows, the same models, nothing but windows collected."""

import datetime as dt
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

import rspmn
from conformance import check_engine
from rspmn import Episodes, Schema, Windows
from rspmn.cli import main
from rspmn.data.sources.spark import Spark
from rspmn.data.write import write_episodes
from rspmn.doctor import examine
from rspmn.envs.domains import DOMAINS
from rspmn.errors import DataError
from rspmn.learn import LearnConfig, learn_rspmn
from same_windows import assert_same

pyspark = pytest.importorskip("pyspark")
pytestmark = pytest.mark.filterwarnings("ignore")  # Spark's own are not ours to mend

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    shared = [str(ROOT / "tests"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, shared))  # workers check conformance
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.mark.parametrize("name", ["FrozenLake", "CrossingTraffic", "Maze"])
@pytest.mark.parametrize("layout", ["flags", "final"])
def test_the_same_windows(name: str, layout: Any, spark: Any, tmp_path: Path) -> None:
    log = DOMAINS[name]().generate(300, 8, 0, layout)
    path = str(tmp_path / "log.parquet")
    write_episodes(log, path)
    table = spark.read.parquet(path).repartition(4)  # in no order at all
    successors: list[Any] = ["state", "tuple"]
    for successor in successors:
        found = rspmn.windows(table, log.schema, terminated="terminated", successor=successor)
        assert_same(found, Windows.from_episodes(log, successor))


def test_the_same_bytes_of_a_model_from_everywhere(spark: Any, tmp_path: Path) -> None:
    log = DOMAINS["FrozenLake"]().generate(3000, 20, 1, "final")
    csv, parquet = str(tmp_path / "log.csv"), str(tmp_path / "log.parquet")
    write_episodes(log, csv)
    write_episodes(log, parquet)
    pandas = pytest.importorskip("pandas")
    sources = {
        "csv": csv,
        "parquet": parquet,
        "pandas": pandas.read_parquet(parquet),
        "polars": pl.read_parquet(parquet),
        "duckdb": duckdb.read_parquet(parquet),
        "spark": spark.read.parquet(parquet),
        "spark csv": spark.read.csv(csv, header=True, inferSchema=True),
    }
    files = {}
    for name, source in sources.items():
        windows = rspmn.windows(source, log.schema, terminated="terminated")
        assert_same(windows, Windows.from_episodes(log))
        model, _ = learn_rspmn(windows)
        model.save(tmp_path / f"{name}.json")
        files[name] = (tmp_path / f"{name}.json").read_bytes()
    assert len(set(files.values())) == 1


def test_values_of_every_type(spark: Any) -> None:
    rows = [
        ("b", dt.date(2024, 1, 1), dt.date(2024, 2, 1), 1.0, 0.5, True, "", 0, 1.0),
        ("b", dt.date(2024, 1, 3), dt.date(2024, 2, 2), 2.0, 0.25, False, "w", 1, -0.0),
        ("a", dt.date(2024, 1, 1), dt.date(2024, 2, 2), None, 0.5, None, "v", 1, 0.0),
        ("a", dt.date(2024, 1, 2), dt.date(2024, 2, 1), 2.0, None, True, None, 0, 2.0),
    ]
    names = ["episode", "time", "day", "whole", "half", "is", "word", "a", "u"]
    schema = Schema([["day", "whole", "half", "is", "word"], ["a"]], ["a"], "u")
    table = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    expected = Windows.from_episodes(Episodes.from_long(table, schema, ending="cut"))
    assert_same(rspmn.windows(spark.createDataFrame(rows, names), schema, ending="cut"), expected)
    read = Episodes.from_long(spark.createDataFrame(rows, names), schema, ending="cut")
    assert_same(Windows.from_episodes(read), expected)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([0, 0, 1], "episode 1, step 1: duplicate time 0"),
        ([0, 1, 5], "episode 1, step 2: time goes from 1 to 5"),
        ([0, None, 1], "time column 'time': a row of episode 1 is empty"),
    ],
)
def test_faults_are_named(times: list[Any], message: str, spark: Any) -> None:
    rows = [(1, t, "p", "l", 1.0) for t in times]
    table = spark.createDataFrame(rows, "episode int, time int, x string, a string, u double")
    schema = Schema([["x"], ["a"]], ["a"], "u")
    with pytest.raises(DataError) as caught:
        rspmn.windows(table, schema, ending="cut")
    assert message in str(caught.value)
    with pytest.raises(DataError, match="the rows of this table have no order"):
        rspmn.windows(table, schema, time=None, ending="cut")


def test_large_logs(spark: Any, tmp_path: Path) -> None:
    """The sample is the same as DuckDB's, and so are the counts; sums of utilities to rounding."""
    log = DOMAINS["FrozenLake"]().generate(2000, 20, 2, "final")
    path = str(tmp_path / "log.parquet")
    write_episodes(log, path)
    models = []
    for source in (path, spark.read.parquet(path).repartition(3)):
        with rspmn.store_windows(source, log.schema, terminated="terminated") as stored:
            config = LearnConfig(max_windows=len(stored) // 2)
            model, info = learn_rspmn(stored, config)
            assert info.sample is not None
            assert info.sample.steps_placed > 0.9 * log.num_steps
            models.append((model, info.sample.sampled_windows))
    assert models[0][1] == models[1][1]
    for horizon in (1, 20, 100):
        one, other = (float(model.meu(horizon=horizon)) for model, _ in models)
        assert one == pytest.approx(other, abs=1e-12)


def test_moments(spark: Any) -> None:
    rng = np.random.default_rng(0)
    rows = [(k // 10, k % 10, int(rng.integers(2)), int(rng.integers(2)), float(rng.normal()))
            for k in range(3000)]  # fmt: skip
    names = ["episode", "time", "x", "a", "u"]
    table = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    schema = Schema([["x"], ["a"]], ["a"], "u")
    options: dict[str, Any] = {"ending": "cut", "max_windows": 2900}
    found = rspmn.windows(spark.createDataFrame(rows, names), schema, **options)
    assert found.columns["u"].spread is not None
    assert_same(found, rspmn.windows(table, schema, **options))


def test_the_doctor(spark: Any, tmp_path: Path) -> None:
    log = DOMAINS["FrozenLake"]().generate(500, 8, 0, "final")
    write_episodes(log, tmp_path / "log.parquet")
    table = spark.read.parquet(str(tmp_path / "log.parquet"))
    found = examine(table, log.schema, terminated="terminated")
    here = examine(str(tmp_path / "log.parquet"), log.schema, terminated="terminated")
    assert found.findings == here.findings
    assert found.coverage == here.coverage
    assert found.lengths == here.lengths


def test_a_job_on_a_cluster_of_two_workers(tmp_path: Path) -> None:
    """`local-cluster`: a master and two workers, processes of their own."""
    log, schema = str(tmp_path / "log.parquet"), str(tmp_path / "schema.toml")
    options = ["--episodes", "2000", "--layout", "final", "--schema", schema]
    assert main(["generate", "FrozenLake", *options, "-o", log]) == 0
    here, there = tmp_path / "here.json", tmp_path / "there.json"
    assert main(["learn", log, "--schema", schema, "-o", str(here)]) == 0
    home = str(Path(pyspark.__file__).parent)
    environment = os.environ | {"SPARK_HOME": home, "PYSPARK_PYTHON": sys.executable}
    command = [
        f"{home}/bin/spark-submit", "--master", "local-cluster[2,1,1024]",
        "--conf", "spark.ui.enabled=false", "--conf", "spark.executor.memory=1g",
        "--conf", "spark.sql.shuffle.partitions=4",
        str(ROOT / "examples" / "spark_job.py"), log, schema, str(there),
    ]  # fmt: skip
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert there.read_bytes() == here.read_bytes()
    assert "distinct windows of" in done.stdout
    sampled = [*command[:-1], str(tmp_path / "sampled.json"), "--max-windows", "60"]
    done = subprocess.run(sampled, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_engine_conforms(spark: Any) -> None:
    def make(table: dict[str, list[Any]]) -> Any:
        return spark.createDataFrame(pl.DataFrame(table).to_arrow())

    check_engine(Spark, make)
