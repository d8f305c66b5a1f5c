"""Contextual bandits logged by loggers that are random, or mostly right.

    pip install scikit-learn; python benchmarks/logged_bandits.py [--logs 10] [--rows 500 5000]

Rewards are 1 or 0 by logistic functions of the context, one for each of five actions. Contexts are
5 numbers, or 4 categories of 3 values. Loggers draw actions uniformly, from a softmax of what they
are worth, or take the best one but for a share of uniform actions. Printed for each case, over
logs: what an optimal policy, practice and the recommended policy are worth; the share of logs in
which the recommended policy is worth at least what practice is, less 0.02; its mean honest value
and its interval; the share of logs in which the interval holds what the policy is worth; and what
the greedy policies of logistic regressions and of random forests are worth, fitted for each action;
at the end the seconds that learning and the honest value take.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from rspmn import Schema, learn_spmn

ACTIONS, NUMBERS, CATEGORIES, VALUES = 5, 5, 4, 3
#: Contexts in which policies are valued.
FRESH = 20_000


@dataclass(frozen=True)
class World:
    """Contexts, and what actions are worth in them."""

    categories: bool
    weights: Any  # [actions, features]
    bias: Any  # [actions]

    @classmethod
    def drawn(cls, categories: bool, rng: np.random.Generator) -> "World":
        """Draw a world."""
        features = CATEGORIES * VALUES if categories else NUMBERS
        return cls(categories, rng.normal(0, 0.5, (ACTIONS, features)), rng.normal(0, 0.3, ACTIONS))

    def contexts(self, rows: int, rng: np.random.Generator) -> Any:  # [rows, variables]
        """Draw contexts."""
        if self.categories:
            return rng.integers(0, VALUES, (rows, CATEGORIES))
        return rng.normal(size=(rows, NUMBERS))

    def features(self, x: Any) -> Any:  # [rows, features]
        """Return contexts as numbers: indicators of categories."""
        return np.eye(VALUES)[x].reshape(len(x), -1) if self.categories else x

    def worth(self, x: Any) -> Any:  # [rows, actions]
        """Return the probability that each action earns 1."""
        return 1 / (1 + np.exp(-(self.features(x) @ self.weights.T + self.bias)))


def softmax(worth: Any) -> Any:
    """Return probabilities that grow with what actions are worth."""
    shares = np.exp(8 * worth)
    return shares / shares.sum(axis=1, keepdims=True)


def nearly_best(share: float) -> Callable[[Any], Any]:
    """Return a logger that takes the best action but for a share of uniform ones."""
    return lambda worth: share / ACTIONS + (1 - share) * (worth == worth.max(axis=1, keepdims=True))


LOGGERS: dict[str, Callable[[Any], Any]] = {
    "random": nearly_best(1.0), "softmax": softmax, "0.1": nearly_best(0.1),
    "0.02": nearly_best(0.02),
}  # fmt: skip
COLUMNS = (
    "best", "practice", "recommended", "no worse", "honest", "low", "high", "held", "logistic",
    "forests", "learn s", "value s",
)  # fmt: skip


def trial(categories: bool, rows: int, logger: str, seed: int) -> list[float]:
    """Return the figures of one log."""
    rng = np.random.default_rng(seed)
    world = World.drawn(categories, rng)
    x, new = world.contexts(rows, rng), world.contexts(FRESH, rng)
    chances, worth = LOGGERS[logger](world.worth(x)), world.worth(new)
    a = (chances.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1).clip(max=ACTIONS - 1)
    u = (rng.random(rows) < world.worth(x)[np.arange(rows), a]).astype(float)
    names = [f"x{j}" for j in range(x.shape[1])]

    def table(contexts: Any) -> dict[str, Any]:
        texts = np.array(["p", "q", "r"])[contexts] if categories else contexts
        return {name: texts[:, j] for j, name in enumerate(names)}

    def value(made: Any) -> float:
        return float(worth[np.arange(FRESH), made].mean())

    clock = time.process_time()
    log = {**table(x), "a": a, "u": u}
    model, _ = learn_spmn(log, Schema([names, ["a"]], ["a"], "u"))
    learned = time.process_time() - clock
    policy = model.policy()
    found = policy.honest_value()
    valued = time.process_time() - clock - learned
    practice = float((LOGGERS[logger](worth) * worth).sum(axis=1).mean())
    recommended = value(model.decide(table(new))["a"].astype(int))
    others = [greedy(kind, world, x, a, u, new) for kind in (regression, forest)]
    return [
        float(worth.max(axis=1).mean()), practice, recommended,
        recommended >= practice - 0.02, found.point, found.low, found.high,
        found.low <= recommended <= found.high, *map(value, others), learned, valued,
    ]  # fmt: skip


def regression() -> Any:
    """Return a logistic regression."""
    return LogisticRegression(max_iter=1000)


def forest() -> Any:
    """Return a random forest."""
    return RandomForestClassifier(100, min_samples_leaf=5, random_state=0)


def greedy(kind: Callable[[], Any], world: World, x: Any, a: Any, u: Any, new: Any) -> Any:
    """Return the action of highest predicted reward in each new context."""
    worth = np.zeros((len(new), ACTIONS))
    for action in range(ACTIONS):
        own = a == action
        worth[:, action] = u[own].mean() if own.any() else 0.0
        if len(np.unique(u[own])) == 2:
            fitted = kind().fit(world.features(x[own]), u[own])
            worth[:, action] = fitted.predict_proba(world.features(new))[:, 1]
    return worth.argmax(axis=1)


def main() -> None:
    """Print a line for each case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", type=int, default=10)
    parser.add_argument("--rows", type=int, nargs="+", default=[500, 5000])
    parser.add_argument("--contexts", nargs="+", default=["numbers", "categories"])
    parser.add_argument("--loggers", nargs="+", default=list(LOGGERS), choices=LOGGERS)
    arguments = parser.parse_args()
    print(f"{'':26}" + "".join(f"{name:>12}" for name in COLUMNS))
    for contexts in arguments.contexts:
        for rows in arguments.rows:
            for logger in arguments.loggers:
                seeds = range(arguments.logs)
                runs = [trial(contexts == "categories", rows, logger, seed) for seed in seeds]
                cells = "".join(f"{mean:12.3f}" for mean in np.mean(runs, axis=0))
                print(f"{contexts:10} {rows:6} {logger:8}{cells}", flush=True)


if __name__ == "__main__":
    main()
