"""Contextual bandits from scikit-learn's tables: the class is the right action.

    pip install scikit-learn; python benchmarks/bandits.py [--seeds 5] [--data wine digits]

Half of the rows are the log: an action is drawn uniformly, and earns 1 if it is the class. Each
method decides greedily in the other half. Printed, as mean ± standard deviation over seeds: the
share of right decisions; what the method claims they are worth on average; the share of contexts
that are less usual than all logged ones, and that are not answered; seconds of CPU to learn;
milliseconds of CPU a decision if all are asked at once, and if each is asked alone.

The others are a random forest for each action, and logistic regression on the rows that earned 1,
which inverse propensities would all weigh alike.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from rspmn import Schema, learn_spmn

DATA = {"wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}
COLUMNS = "right", "claimed", "unusual", "unanswered", "learn s", "ms each", "ms alone"


def network(x: Any, a: Any, u: Any, new: Any, _: int) -> tuple[Any, ...]:
    """Learn with the defaults; decide."""
    names = [f"x{j}" for j in range(x.shape[1])]
    log = {name: x[:, j] for j, name in enumerate(names)} | {"a": a, "u": u}
    clock = time.process_time()
    model, info = learn_spmn(log, Schema([names, ["a"]], ["a"], "u"))
    learned = time.process_time() - clock
    table = {name: new[:, j] for j, name in enumerate(names)}
    model.decide({name: column[:1] for name, column in table.items()})  # compiles
    clock = time.process_time()
    found = model.decide(table)
    each = (time.process_time() - clock) / len(new)
    states = [dict(zip(names, row, strict=True)) for row in new[:50].tolist()]
    clock = time.process_time()
    for state in states:
        model.best_decisions(state)
    alone = (time.process_time() - clock) / len(states)
    lost, unusual = np.isnan(found["utility"]).mean(), (found["usual"] == 0).mean()
    kind = f"{info.classes} classes" if info.classes else "intervals"
    figures = lost, learned, 1e3 * each, 1e3 * alone
    return found["a"], found["utility"].mean(), unusual, *figures, kind


def forest(x: Any, a: Any, u: Any, new: Any, actions: int) -> tuple[Any, ...]:
    """Fit a random forest for each action."""
    clock = time.process_time()
    worth = np.zeros((len(new), actions))
    for action in range(actions):
        own = a == action
        model = RandomForestClassifier(100, random_state=0).fit(x[own], u[own] > 0)
        worth[:, action] = model.predict_proba(new) @ model.classes_
    return _greedy(worth, time.process_time() - clock)


def regression(x: Any, a: Any, u: Any, new: Any, actions: int) -> tuple[Any, ...]:
    """Fit a logistic regression of the action, on the rows that earned 1."""
    clock = time.process_time()
    scale = StandardScaler().fit(x)
    model = LogisticRegression(max_iter=5000).fit(scale.transform(x[u > 0]), a[u > 0])
    worth = np.zeros((len(new), actions))
    worth[:, model.classes_] = model.predict_proba(scale.transform(new))
    return _greedy(worth, time.process_time() - clock)


def _greedy(worth: Any, seconds: float) -> tuple[Any, ...]:
    nan = np.nan
    return worth.argmax(axis=1), worth.max(axis=1).mean(), nan, 0.0, seconds, nan, nan, ""


METHODS: dict[str, Callable[..., tuple[Any, ...]]] = {
    "learn_spmn": network, "random forests": forest, "logistic regression": regression,
}  # fmt: skip


def trial(load: Callable[[], Any], method: Callable[..., tuple[Any, ...]], seed: int) -> list[Any]:
    """Return the figures of one method and one division of the rows."""
    data, rng = load(), np.random.default_rng(seed)
    order = rng.permutation(len(data.target))
    log, rest = order[: len(order) // 2], order[len(order) // 2 :]
    actions = int(data.target.max()) + 1
    a = rng.integers(0, actions, len(log))
    u = 1.0 * (a == data.target[log])
    made, *figures = method(data.data[log], a, u, data.data[rest], actions)
    return [(made == data.target[rest]).mean(), *figures]


def main() -> None:
    """Print a table for each data set."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=DATA)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    arguments = parser.parse_args()
    for name in arguments.data:
        print(f"\n{name}\n{'':20}" + "".join(f"{column:>16}" for column in COLUMNS))
        for method in arguments.methods:
            runs = [trial(DATA[name], METHODS[method], seed) for seed in range(arguments.seeds)]
            numbers = np.array([run[:-1] for run in runs], dtype=float)
            pairs = zip(numbers.mean(axis=0), numbers.std(axis=0), strict=True)
            cells = (f"{m:.3f} ± {s:.3f}" if m == m else "" for m, s in pairs)
            kinds = ", ".join(sorted({run[-1] for run in runs} - {""}))
            print(f"{method:20}" + "".join(f"{cell:>16}" for cell in cells) + f"  {kinds}")


if __name__ == "__main__":
    main()
