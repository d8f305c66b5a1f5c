"""Growths that run together, so that the tables of many of them are counted at once.

A growth is a generator. It yields the tests that it is about to need (`Needs`), or the growths of
its children (`Fork`), whose results it is sent. What it needs it then asks for itself, as if
nobody had counted: to answer a need only makes that faster. Run one by one, growths need nothing
to be counted ahead.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from rspmn.learn.structure.rows import Rows
from rspmn.learn.structure.targets import Later
from rspmn.types import Ints

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Need:
    """Statistics of all pairs of some variables in some rows, given strata."""

    rows: Rows
    left: tuple[str, ...]
    right: tuple[str, ...]
    strata: Ints  # [n]


@dataclass(frozen=True, eq=False)
class MeanNeed:
    """Tests of whether the mean of the utility depends on some variables, given strata."""

    rows: Rows
    names: tuple[str, ...]
    utility: str
    strata: Ints  # [n]


@dataclass(frozen=True, eq=False)
class BayesNeed:
    """Bayes factors of variables that were observed too rarely for tests."""

    rows: Rows
    names: tuple[str, ...]
    outcomes: tuple[Later, ...]
    least: float  # a value observed less often with a decision was observed too rarely


@dataclass(frozen=True, eq=False)
class Fork:
    """The growths of children; their results are sent in this order."""

    children: "Sequence[Growth[Any]]"


Needs: TypeAlias = Sequence[Need | MeanNeed | BayesNeed]
Growth: TypeAlias = Generator[Fork | Needs, Any, T]


@dataclass(eq=False)
class _Task:
    growth: Growth[Any]
    parent: "_Task | None"
    place: int  # among the parent's children
    answer: Any = None  # to be sent
    results: list[Any] = field(default_factory=list)  # of the children
    waiting: int = 0  # for so many children


def run_alone(growth: Growth[T]) -> T:
    """Run a growth and its children, one after the other."""
    answer = None
    while True:
        try:
            asked = growth.send(answer)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        answer = [run_alone(child) for child in asked.children] if isinstance(asked, Fork) else None


def run_together(growth: Growth[T], count: Callable[[Needs], None]) -> T:
    """Run a growth and its children, all that can go on at the same time."""
    root = _Task(growth, None, 0)
    ready = [root]
    while ready:
        needs: list[Need | MeanNeed | BayesNeed] = []
        blocked: list[_Task] = []
        while ready:
            task = ready.pop()
            try:
                asked = task.growth.send(task.answer)
            except StopIteration as stop:
                if task.parent is None:
                    return stop.value  # type: ignore[no-any-return]
                ready += _reported(task, stop.value)
                continue
            if isinstance(asked, Fork):
                task.results = task.answer = [None] * len(asked.children)
                task.waiting = len(asked.children)
                several = [_Task(child, task, k) for k, child in enumerate(asked.children)]
                ready += several[::-1] or [task]
            else:
                task.answer = None
                needs += asked
                blocked.append(task)
        count(needs)
        ready = blocked[::-1]
    raise AssertionError("a growth waits for children that never end")


def _reported(task: _Task, result: object) -> list[_Task]:
    """Report a result to the parent; return the parent if it was the last."""
    parent = task.parent
    assert parent is not None
    parent.results[task.place] = result
    parent.waiting -= 1
    return [] if parent.waiting else [parent]
