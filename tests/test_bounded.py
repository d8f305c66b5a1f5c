"""Limits are kept: memory while a log is read, and Ctrl-C ends a command at once."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import ModuleType

import duckdb
import numpy as np
import pytest

from effort import SOAK, mostly_soak
from lake_files import write_lake
from rspmn.__main__ import run
from rspmn.data.sources.connect import connect
from rspmn.data.windows import Windows
from rspmn.errors import DataError
from rspmn.learn import LearnConfig, learn_rspmn, learn_spmn
from rspmn.schema import Schema

#: Commands that take long enough to be interrupted, and seconds after which they are.
LONG = {
    "generate": ("generate", "Taxi", "--episodes", "3000000", "-o", "big.parquet"),
    "learn": ("learn", "many.parquet", "--schema", "s.toml", "-o", "m.json"),
    "doctor": ("doctor", "many.parquet", "--schema", "s.toml"),
    "report": ("report", "model.json", "--horizon", "50", "-o", "page.html"),
    "evaluate": ("evaluate", "model.json", "--log", "many.parquet", "--horizon", "50"),
    "returns": ("returns", "model.json", "--horizon", "2000"),
    "sensitivity": ("sensitivity", "model.json", "--horizon", "2000"),
    "reproduce": ("reproduce", "--domains", "Taxi", "-o", "."),
    "serve": ("serve", "model.json", "--port", "0"),
}
#: How often the log is repeated, so that it takes some ten seconds of the processor to learn from.
TIMES = 10_000 if SOAK else 3_000
#: Of the processor; on an idle machine they are those of the clock.
MOST_SECONDS = 0.5


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a log, a model, and the log many times over."""
    folder = write_lake(tmp_path_factory.mktemp("inputs"))
    log = folder / "log.csv"
    with duckdb.connect() as connection:
        many = (
            f"SELECT l.* REPLACE (episode + 300 * k AS episode) FROM range({TIMES}) t(k), '{log}' l"
        )
        times = connection.execute(f"SELECT DISTINCT time FROM '{log}' ORDER BY time").fetchall()
        # in the order of times: it has to be sorted
        union = " UNION ALL ".join(f"{many} WHERE time = {time}" for (time,) in times)
        connection.execute(f"COPY ({union}) TO '{folder / 'many.parquet'}'")
    return folder


@pytest.fixture
def _own_handler() -> Iterator[None]:
    """What Ctrl-C does to pytest stays as it is."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGALRM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def seconds_of(session: int) -> float:
    """Return the processor's seconds that the processes of a session have used."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            fields = stat.read_text().rsplit(")", 1)[1].split()
            ticks += (int(fields[3]) == session) * sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc to see what others use")
@pytest.mark.parametrize("name", mostly_soak(LONG, ["learn"]))
def test_ctrl_c(name: str, inputs: Path, tmp_path: Path) -> None:
    """One line, exit code 130, no file; on an idle machine within half a second."""
    for path in inputs.iterdir():
        (tmp_path / path.name).symlink_to(path)
    running = subprocess.Popen(
        [sys.executable, "-m", "rspmn", *LONG[name]], cwd=tmp_path, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    late = time.monotonic() + 20
    while running.poll() is None and seconds_of(running.pid) < 1.0 and time.monotonic() < late:
        time.sleep(0.02)  # it is importing what it needs
    if running.poll() is not None:
        running.communicate()
        pytest.skip("done before it could be interrupted")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = seconds_of(running.pid)
    os.kill(running.pid, signal.SIGINT)
    _, told = running.communicate(timeout=30)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime - used
    # Python ends by the signal itself if `exec` was interrupted; to a shell both are 130.
    assert running.returncode in (130, -signal.SIGINT), told
    assert len(told.strip().splitlines()) == 1, told
    assert taken < MOST_SECONDS
    assert not list(tmp_path.glob(".*"))


@pytest.mark.usefixtures("_own_handler")
def test_ctrl_c_while_python_imports(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Slow:
        """A finder that is interrupted while it looks for the command line."""

        def find_spec(self, name: str, *_: object) -> None:
            if name == "rspmn.cli":
                raise KeyboardInterrupt

    for name in [name for name in sys.modules if name.split(".")[:2] == ["rspmn", "cli"]]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("rspmn.cli", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Slow(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "rspmn: interrupted; no file was left incomplete\n"


@pytest.mark.usefixtures("_own_handler")
@pytest.mark.parametrize("error", [ImportError("_duckdb"), RuntimeError("Query interrupted")])
def test_errors_after_ctrl_c_are_the_interruption(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fault: Ctrl-C while DuckDB was loaded was a traceback, as it has an error of its own."""

    def broken(_: object) -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise error from None

    monkeypatch.setattr("rspmn.cli.framework.function_of", lambda _: broken)
    monkeypatch.setattr(sys, "argv", ["rspmn", "domains"])
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "rspmn: interrupted; no file was left incomplete\n"


@pytest.mark.usefixtures("_own_handler")
def test_ctrl_c_waits_for_a_compiled_module_that_is_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fault: that of DuckDB ended the process if it was interrupted, with a page of traceback."""
    loaded = []

    def load(_: ModuleType) -> None:
        signal.raise_signal(signal.SIGINT)
        loaded.append(True)

    def command(_: object) -> None:
        ExtensionFileLoader("module", "module.so").exec_module(ModuleType("module"))
        time.sleep(60)

    monkeypatch.setattr("_imp.exec_dynamic", load)
    monkeypatch.setattr("rspmn.cli.framework.function_of", lambda _: command)
    monkeypatch.setattr(sys, "argv", ["rspmn", "domains"])
    with pytest.raises(SystemExit) as ended:
        run()
    assert loaded
    assert ended.value.code == 130
    assert capsys.readouterr().err == "rspmn: interrupted; no file was left incomplete\n"


@pytest.mark.parametrize("limit", ["1", "GB", "-1GB", "1 PB", "many"])
def test_sizes_that_are_none(limit: str) -> None:
    with pytest.raises(DataError, match="expected a size such as '1GB' or '500MB'"):
        connect(limit).__enter__()


def test_what_the_process_uses_counts() -> None:
    """DuckDB gets what is left of the limit, at least half of it."""
    with connect("100GB") as connection:
        ((most,),) = connection.execute("SELECT current_setting('memory_limit')").fetchall()
        assert 92.0 < float(most.split()[0]) < 93.13  # 100 GB are 93.13 GiB
    with connect("10MB") as connection:
        ((most,),) = connection.execute("SELECT current_setting('memory_limit')").fetchall()
        assert most.startswith("4.7 MiB")


#: Runs a command, and prints the most memory that it had, in MB.
MEASURED = """
import resource, subprocess, sys
subprocess.run([sys.executable, "-m", "rspmn", *sys.argv[1:]], check=True, capture_output=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6)
"""


@pytest.mark.soak
def test_the_memory_limit(inputs: Path, tmp_path: Path) -> None:
    """Of a log that has to be sorted: a tenth above the limit at most, Python and all included."""
    learn = ["learn", "many.parquet", "--schema", "s.toml", "-o", str(tmp_path / "m.json")]
    command = [sys.executable, "-c", MEASURED, *learn, "--memory-limit", "500MB"]
    done = subprocess.run(command, cwd=inputs, check=True, capture_output=True, text=True)
    assert 300 < float(done.stdout) < 550


@pytest.mark.soak
@pytest.mark.parametrize("limit", [1.0, 2.0])
def test_the_time_limit_of_recurrent_models(limit: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where learning takes longer without a limit: a tenth above it at most, of the processor."""
    from rspmn.envs.sys_admin import sys_admin

    windows = Windows.from_episodes(sys_admin(10).generate(5000, 40, 0, "final"))
    monkeypatch.setattr(time, "monotonic", time.process_time)
    learn_rspmn(windows, LearnConfig(max_seconds=0))  # imports what it needs
    before = time.process_time()
    _, info = learn_rspmn(windows, LearnConfig(max_seconds=limit))
    assert info.structure.stopped_by == "seconds"
    assert time.process_time() - before < limit * 1.1


@pytest.mark.soak
def test_the_time_limit_of_single_decisions() -> None:
    """What follows the growing of structure is part of the limit: a tenth of it at most."""
    rng = np.random.default_rng(0)
    names = [f"x{k}" for k in range(20)]
    table: dict[str, object] = {name: rng.normal(size=20_000) for name in names}
    made = rng.integers(0, 3, 20_000)
    x0, x1, x2 = (np.asarray(table[name]) for name in names[:3])
    table |= {"a": made, "u": np.sin(3 * x0) * made + x1 * x2}
    schema = Schema([names, ["a"]], ["a"], "u")
    before = time.process_time()
    _, info = learn_spmn(table, schema, LearnConfig(max_seconds=2))
    assert info.stopped_by == "seconds"
    assert time.process_time() - before < 2 * 1.1
