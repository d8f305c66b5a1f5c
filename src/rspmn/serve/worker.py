"""A thread that makes calls one after the other, and does not keep the process from ending."""

from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any


class Worker:
    """Makes calls in a thread.

    The threads of `ThreadPoolExecutor` are waited for when Python ends: Ctrl-C would wait for the
    longest simulation.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name="rspmn", daemon=True)
        self._thread.start()

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        """Make a call after all that were submitted before; return what will have its result."""
        made: Future[Any] = Future()
        self._calls.put((made, call))
        return made

    def close(self) -> None:
        """Let the thread end after all calls that were submitted."""
        self._calls.put(None)

    def _work(self) -> None:
        while (item := self._calls.get()) is not None:
            made, call = item
            if not made.set_running_or_notify_cancel():
                continue
            try:
                made.set_result(call())
            except BaseException as error:  # noqa: BLE001  # raised where the result is asked for
                made.set_exception(error)
            del made, call, item  # nothing is kept until the next call
