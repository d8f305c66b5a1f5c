"""One model gives the same answers in many threads and processes, and so do its copies."""

import copy
import multiprocessing
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import product
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import rspmn
from effort import SOAK, mostly_soak, seeds
from number_worlds import corridor
from rspmn import RSPMN, SPMN, Episodes, Schema
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.envs.paper_grid import paper_grid
from rspmn.errors import RspmnError
from rspmn.explain import after_actions
from rspmn.explain.outcome_rows import OutcomeRows
from rspmn.infer.compiled import planned, state_products
from rspmn.learn import LearnConfig, learn_rspmn, learn_spmn
from rspmn.trust import how_sure

Model = RSPMN | SPMN
#: What is asked, the name of the question, its arguments.
Question = tuple[str, str, tuple[Any, ...]]
MODEL, POLICY, UNTRIED = "model", "policy", "policy with untried actions"

THREADS, PROCESSES, HORIZON = (8, 4, 9) if SOAK else (4, 2, 4)


def lake(**settings: Any) -> RSPMN:
    return learn_rspmn(frozen_lake().generate(60, 8, 0), config=LearnConfig(**settings))[0]


def numbers() -> RSPMN:
    log, schema = corridor(20, 0)
    return learn_rspmn(rspmn.windows(log, schema, terminated="over"))[0]


def umbrella() -> SPMN:
    table = {"wet": [1, 1, 0, 0] * 9, "a": ["yes", "no"] * 18, "u": [0.0, -5.0, 1.0, 2.0] * 9}
    return learn_spmn(table, Schema([["wet"], ["a"]], ["a"], "u"))[0]


#: How a model of each kind is made, and states of it.
KINDS: dict[str, tuple[Callable[[], Model], list[dict[str, Any]]]] = {
    "lake": (lake, [{"cell": 6}, {}, {"cell": 0}, {"cell": 10}]),
    "counts": (lambda: lake(successors="counts"), [{"cell": 0}, {"cell": 6}, {}]),
    "by hand": (paper_grid, [{"x": 0, "y": 0}, {"x": 1, "y": 0}, {"x": 0}]),
    "numbers": (numbers, [{"x": 0.31, "attribute": 0.0}, {}, {"x": 0.7}]),
    "decisions": (umbrella, [{"wet": 1}, {"wet": 0}, {}]),
}


@cache
def stored(kind: str) -> bytes:
    return pickle.dumps(KINDS[kind][0]())


def pickled(one: Any) -> Any:
    return pickle.loads(pickle.dumps(one))


def fresh(kind: str) -> Any:
    """Return a model that was never asked anything."""
    return pickle.loads(stored(kind))


def policy_of(model: Model) -> Any:
    return model.policy(HORIZON) if isinstance(model, RSPMN) else model.policy()


def questions(kind: str) -> list[Question]:
    """Return what is asked of a model of a kind, and of its policy."""
    found: list[Question] = []
    times = [0] if kind == "decisions" else range(HORIZON)
    states = KINDS[kind][1]
    for state in states if SOAK else states[:2]:
        found += [(MODEL, "meu", (state,)), (MODEL, "action_values", (state,))]
        for name, t in product(("act", "action_values", "value"), times):
            found.append((POLICY, name, (state, t)))
    columns = {name: [value] for name, value in states[0].items()}
    for t in times:
        found += [
            (POLICY, "act_many", (columns, t)),
            (POLICY, "how_sure", (states[0], t)),
            (POLICY, "explain", (states[0], t)),
        ]
    return [*found, (POLICY, "honest_value", ()), (UNTRIED, "act", (states[0],))]


def _sampled(model: Any, policy: Any) -> object:
    """Return some draws, and how likely they are."""
    if isinstance(model, SPMN):
        rows = model.sample(20, 3, policy)
        return rows, model.log_likelihood(rows).tolist()
    drawn: Episodes = model.sample(20, 5, 3)
    return drawn.to_long(), model.log_likelihood(drawn).tolist()


def answer(model: Any, policy: Any, question: Question) -> str:
    asked, name, arguments = question
    if asked == UNTRIED and isinstance(model, SPMN):
        return ""
    whom = {MODEL: lambda: model, POLICY: lambda: policy}.get(
        asked, lambda: model.policy(3, offer="all")
    )()
    try:
        found = getattr(whom, name)(*arguments)
        return f"{found!r} {found}"
    except RspmnError as error:
        return str(error)


def ask(model: Any, policy: Any, kind: str, order: int = 0) -> list[str]:
    """Return all answers as text, in the order of the questions; they are asked in another."""
    asked = questions(kind)
    answers = [""] * len(asked)
    for k in np.random.default_rng(order).permutation(len(asked)).tolist():
        answers[k] = answer(model, policy, asked[k])
    return [*answers, str(_sampled(model, policy))]


@cache
def expected(kind: str) -> list[str]:
    model = fresh(kind)
    return ask(model, policy_of(model), kind)


def ask_again(kind: str, order: int) -> list[str]:
    """Answer in another process."""
    model = fresh(kind)
    return ask(model, policy_of(model), kind, order)


def interrupted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that lets other threads run before it returns."""

    def wrapped(*arguments: Any, **options: Any) -> Any:
        found = function(*arguments, **options)
        time.sleep(1e-4)
        return found

    return wrapped


@pytest.fixture
def eager_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let threads take turns often, also where something is computed, and tables be full soon."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    for module in (planned, how_sure, after_actions):
        monkeypatch.setattr(module, "KEPT", 2)
    monkeypatch.setattr(state_products, "MOST_KEPT", 3)
    slow: list[tuple[type, str]] = [
        (planned.Plan, "_choose"),
        (how_sure.DrawnPlan, "_rule"),
        (state_products.Products, "_products_of"),
        (OutcomeRows, "after_choices"),
    ]
    for owner, name in slow:
        monkeypatch.setattr(owner, name, interrupted(getattr(owner, name)))
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("kind", mostly_soak(KINDS, {"lake", "decisions"}))
@pytest.mark.usefixtures("eager_threads")
def test_threads_give_the_same_answers_from_the_first_question_on(kind: str) -> None:
    for seed in seeds(1, 20):
        model, start = fresh(kind), Barrier(THREADS)
        policy = policy_of(model)

        def answers(thread: int, model: Any = model, policy: Any = policy, start: Any = start,
                    seed: int = seed) -> list[str]:  # fmt: skip
            start.wait()
            return ask(model, policy, kind, THREADS * seed + thread)

        with ThreadPoolExecutor(THREADS) as pool:
            for found in pool.map(answers, range(THREADS)):
                assert found == expected(kind)


@pytest.mark.parametrize("method", mostly_soak(["fork", "spawn"], {"fork"}))
def test_processes_give_the_same_answers(method: str) -> None:
    kinds = list(KINDS) if SOAK else ["decisions"]
    wanted = [expected(kind) for kind in kinds]
    with multiprocessing.get_context(method).Pool(PROCESSES) as pool:
        found = pool.starmap(ask_again, [(kind, k) for k in range(PROCESSES) for kind in kinds])
    assert found == wanted * PROCESSES


@pytest.mark.parametrize("kind", mostly_soak(KINDS, {"lake", "decisions"}))
@pytest.mark.parametrize("used", [False, True])
def test_copies_give_the_same_answers(kind: str, used: bool) -> None:
    model = fresh(kind)
    policy = policy_of(model)
    if used:
        assert ask(model, policy, kind) == expected(kind)
    for copied in (copy.copy, copy.deepcopy, pickled):
        again, planned_again = copied(model), copied(policy)
        assert again == model
        assert hash(again) == hash(model)
        assert ask(again, planned_again, kind) == expected(kind)
    assert ask(model, policy, kind) == expected(kind)
