"""Ctrl-C while ranges are queried in threads: none is left running, whenever it comes."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread
from typing import Any

import pytest

from rspmn.data.sources.engine import in_threads


class Slow:
    """A range whose query takes long, and can be stopped once it has begun."""

    def __init__(self) -> None:
        self.asked, self.begun, self.stopped = Event(), Event(), Event()

    def query(self) -> None:
        self.asked.set()
        self.begun.wait()
        assert self.stopped.wait(60)

    def interrupt(self) -> None:
        if self.begun.is_set():
            self.stopped.set()
        self.begun.set()  # after the first time: it came too early


Run = Callable[[Any], Any]


def interrupted(monkeypatch: pytest.MonkeyPatch, rows: Any, start: Callable[[Run], None]) -> None:
    """Query a range in a thread that is being started when Ctrl-C is pressed."""

    def start_all(_: object, run: Run, __: object) -> None:
        start(run)
        raise KeyboardInterrupt

    monkeypatch.setattr(ThreadPoolExecutor, "map", start_all)
    with pytest.raises(KeyboardInterrupt):
        in_threads([rows], lambda rows: rows.query())  # type: ignore[attr-defined]


def test_a_query_that_is_about_to_begin_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: it was told to stop once, too early, and ran while its connection was closed."""
    rows = Slow()

    def start(run: Run) -> None:
        Thread(target=run, args=(rows,)).start()
        assert rows.asked.wait(60)

    interrupted(monkeypatch, rows, start)
    assert rows.stopped.is_set()


def test_a_thread_that_begins_afterwards_asks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, started = Slow(), list[Run]()
    interrupted(monkeypatch, rows, started.append)
    assert started[0](rows) is None
    assert not rows.asked.is_set()
