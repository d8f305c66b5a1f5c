"""Conformance of engines: `check_engine`."""

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from rspmn.data.episodes import Episodes
from rspmn.data.sources.count_windows import StoredWindows, store_windows
from rspmn.data.sources.engine import ROW, Engine
from rspmn.data.windows import Successor, Windows
from rspmn.errors import DataError
from rspmn.schema import Schema

Table = dict[str, list[Any]]

#: A long log: episodes that terminated, were cut, and were cut in a state that was kept; state
#: variables of every type, with missing values.
LOG: Table = {
    "episode": [0, 0, 0, 1, 1, 2, 2, 2, 3, 3],
    "time": [0, 1, 2, 0, 1, 0, 1, 2, 0, 1],
    "word": ["p", "q", None, "p", "q", "p", "q", "r", "p", "q"],
    "whole": [1, 2, 1, None, 2, 1, 1, 2, 1, 2],
    "real": [0.5, None, 0.25, 0.5, 0.5, 0.25, 0.5, 0.75, 0.5, None],
    "is": [True, False, None, True, True, False, True, False, True, False],
    "day": [dt.date(2024, 1, d) for d in (1, 2, 3, 1, 2, 1, 2, 3, 1, 2)],
    "a": ["l", "r", "l", "l", "l", "r", "r", None, "l", "r"],
    "u": [0.0, 1.5, -2.0, 0.5, 0.5, 1.0, 0.0, None, 0.0, 1.5],
    "done": [False, False, True, False, False, False, False, False, False, True],
}
SCHEMA = Schema([["word", "whole", "real", "is", "day"], ["a"]], ["a"], "u")
FLAGGED = SCHEMA.with_log(terminated="done")
COMPUTED = Schema(
    [["word", "whole > 1", "real is missing"], ["a"]],
    ["a"],
    ["2*u", "-0.5*`is`", {"word": {"q": 1, "r": 9}}],
).with_log(terminated="done and not (word == p or real > 9)")

#: What may be wrong with a log: the columns that show it.
FAULTS: dict[str, Table] = {
    "a duplicate time": {"time": [0, 1, 1, 0, 1, 0, 1, 2, 0, 1]},
    "a missing step": {"time": [0, 1, 5, 0, 1, 0, 1, 2, 0, 1]},
    "a missing time": {"time": [0, None, 1, 0, 1, 0, 1, 2, 0, 1]},
    "a missing decision": {"a": ["l", None, "l", "l", "l", "r", "r", None, "l", "r"]},
    "an end in the middle": {"done": [True, *LOG["done"][1:]]},
}


def check_engine(engine: type[Engine], make: Callable[[Table], object]) -> None:
    """Check that an engine reads logs as all others do.

    Parameters
    ----------
    engine
        The class of the engine.
    make
        A function that makes a source of this engine of a table, columns by name; None is missing.

    Raises
    ------
    AssertionError
        With the rule that is broken.

    Examples
    --------
    >>> import polars
    >>> from rspmn.data.sources.polars import Polars
    >>> check_engine(Polars, polars.DataFrame)
    """
    _check_opening(engine, make)
    _check_windows(engine, make)
    _check_batches(engine, make)
    _check_row_numbers(engine, make)
    _check_faults(engine, make)


def _check_opening(engine: type[Engine], make: Callable[[Table], object]) -> None:
    assert engine.opens(make(LOG)), "opens(source) is False for a source of its own"
    for other in (None, 3, object()):
        assert not engine.opens(other), f"opens({other!r}) is True"
    with engine.open(make(LOG)) as opened:
        assert isinstance(opened, engine), f"open gave {type(opened).__name__}"
        assert opened.names == list(LOG), f"names are {opened.names}, expected {list(LOG)}"
        rows = opened.read(opened.frame.select("episode", "a"))
        assert rows.rows == len(LOG["a"]), f"read {rows.rows} rows, expected {len(LOG['a'])}"
        missing = rows.cells("a").missing.sum()
        assert missing == LOG["a"].count(None), f"read {missing} missing values, expected 1"


def _check_windows(engine: type[Engine], make: Callable[[Table], object]) -> None:
    """Check windows against their definition, for rows in any order and every layout."""
    dated = LOG | {"time": [f"2024-01-0{t + 1}" for t in LOG["time"]]}
    twice = {name: [*column, *column] for name, column in LOG.items()}
    twice["time"] = [13 * time for time in twice["time"]]
    logs = {
        "rows in order": (LOG, FLAGGED),
        "rows in no order": (_shuffled(LOG), FLAGGED),
        "times that are text": (dated, FLAGGED),
        "no flag": (LOG, SCHEMA.with_log(ending="short")),
        "computed columns": (LOG, COMPUTED),
        "rows twice, times in steps": (twice, FLAGGED.with_log(duplicates="drop", step=10)),
        "the wide layout": (_wide(), SCHEMA.with_log(wide=True, ending="final_row")),
    }
    for what, (table, schema) in logs.items():
        successor: Successor = "tuple" if what == "no flag" else "state"
        expected = Windows.from_episodes(Episodes.from_log(table, schema), successor)
        with _stored(engine, make(table), schema, successor) as stored:
            _assert_same(stored.read(), expected, what)


def _check_batches(engine: type[Engine], make: Callable[[Table], object]) -> None:
    """Check that batches hold every window once, and that a sample does not depend on them."""
    with _stored(engine, make(LOG), FLAGGED) as stored:
        steps = int(stored.read().counts.sum())
        samples = set()
        for size in (1, 3, 1000):
            found = [int(text) for text in stored.map(_steps, size)]
            assert sum(found) == steps, f"batches of {size} hold {sum(found)} of {steps} steps"
            samples.add(sum(int(text) for text in stored.sample(0.5, 7, _steps, size)))
        assert len(samples) == 1, f"samples in batches of 1, 3 and 1000 have {samples} steps"


def _check_row_numbers(engine: type[Engine], make: Callable[[Table], object]) -> None:
    """Check logs without times: rows are numbered from 0 as they were given, or refused."""
    schema = FLAGGED.with_log(time=None)
    table = {name: column for name, column in LOG.items() if name != "time"}
    with engine.open(make(table)) as opened:
        try:
            numbered = opened.numbered()
        except DataError:
            return
        numbers = opened.read(numbered.frame.select(ROW)).cells(ROW).present.tolist()
        assert sorted(numbers) == list(range(len(LOG["a"]))), f"rows are numbered {numbers}"
    with _stored(engine, make(table), schema) as stored:
        expected = Windows.from_episodes(Episodes.from_log(table, schema))
        _assert_same(stored.read(), expected, "no times")


def _check_faults(engine: type[Engine], make: Callable[[Table], object]) -> None:
    """Check that logs are refused with the message that they have in memory."""
    for what, change in FAULTS.items():
        expected = _refusal(lambda table: Episodes.from_log(table, FLAGGED), LOG | change)

        def count(source: object) -> None:
            with _stored(engine, source, FLAGGED):
                pass

        found = _refusal(count, make(LOG | change))
        assert found == expected, f"{what}: refused with {found!r}, expected {expected!r}"


# ---- logs, and what is done with them --------------------------------------------------


@contextmanager
def _stored(
    engine: type[Engine], source: object, schema: Schema, successor: Successor = "state"
) -> Iterator[StoredWindows]:
    with (
        engine.open(source) as opened,
        store_windows(opened, schema, successor=successor) as stored,
    ):
        yield stored


def _steps(windows: Windows) -> str:
    return str(windows.counts.sum())


def _refusal(read: Callable[[Any], object], source: object) -> str | None:
    try:
        read(source)
    except DataError as error:
        return str(error)
    return None


def _shuffled(table: Mapping[str, Sequence[Any]]) -> Table:
    order = [7, 2, 9, 0, 5, 3, 8, 1, 6, 4]
    return {name: [column[k] for k in order] for name, column in table.items()}


def _wide() -> Table:
    """Return the log with a row per episode."""
    variables, steps = SCHEMA.variables, max(LOG["time"]) + 1
    found: Table = {f"{name}{t}": [None] * 4 for t in range(steps) for name in variables}
    for row, (episode, time) in enumerate(zip(LOG["episode"], LOG["time"], strict=True)):
        for name in variables:
            found[f"{name}{time}"][episode] = LOG[name][row]
    return found


def _assert_same(one: Windows, other: Windows, what: str) -> None:
    """Check that windows are the same to the last bit."""
    assert one.schema == other.schema, f"{what}: the schema is {one.schema}, not {other.schema}"
    for a, b in ((one.columns, other.columns), (one.next_columns, other.next_columns)):
        for name in b:
            assert a[name].domain == b[name].domain, f"{what}: other values of {name!r}"
            same = a[name].data.tobytes() == b[name].data.tobytes()
            assert same, f"{what}: other windows, they differ in {name!r}"
    for field in ("followed", "counts", "starts"):
        same = np.array_equal(getattr(one, field), getattr(other, field))
        assert same, f"{what}: other windows, they differ in {field!r}"
