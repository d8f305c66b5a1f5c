"""States that are numbers: what learned policies earn, and in which time.

`python benchmarks/soft_boxes.py` learns from logs of CartPole (300 and 1,000 random episodes),
MountainCar (100 episodes of a poor controller), Acrobot (300 episodes of one) and a hospital (2,500
stays), and plays what was learned. `--fitted-q` does the same with fitted Q iteration on
extra-trees, which needs scikit-learn and takes minutes. `--only CartPole`, `--seeds 5`; `-o docs`
writes docs/numbers_figures.md.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from worlds import earned, log_of
from worlds.care import HOSPITAL

import rspmn
from rspmn.model import RSPMN
from rspmn.schema import Schema
from rspmn.types import Array, Bools, Ints

#: The discount of control problems.
DISCOUNT = 0.99
#: Games that are played to value a policy.
GAMES = 20

Act = Callable[[Array, int], Any]  # states and the time to actions


@dataclass(frozen=True)
class Task:
    """A control problem, and who logged it: an action by rule with a probability, else any."""

    env: str
    episodes: int
    rule: Callable[[Array], int] | None = None
    share: float = 0.0
    iterations: int = 60  # of fitted Q

    @property
    def name(self) -> str:
        """The environment and the number of episodes."""
        return f"{self.env.partition('-')[0]}, {self.episodes} episodes"


TASKS = (
    Task("CartPole-v1", 300),
    Task("CartPole-v1", 1000),
    Task("MountainCar-v0", 100, lambda x: 2 if x[1] > 0 else 0, 0.4, 100),
    Task("Acrobot-v1", 300, lambda x: 0 if x[4] > 0 else 2, 0.4, 40),
)


@dataclass(frozen=True, eq=False)
class Logged:
    """Steps of a control problem."""

    state: Array
    action: Ints
    reward: Array
    after: Array
    ended: Bools
    episode: Ints


def logged(task: Task, seed: int) -> Logged:
    """Play a task as its logger does."""
    import gymnasium

    env, rng = gymnasium.make(task.env), np.random.default_rng(seed)
    rows = []
    for episode in range(task.episodes):
        state, _ = env.reset(seed=int(rng.integers(2**31)))
        over = False
        while not over:
            by_rule = task.rule is not None and rng.random() < task.share
            action = task.rule(state) if by_rule and task.rule else int(rng.integers(_size(env)))
            after, reward, ended, cut, _ = env.step(action)
            rows.append((state, action, float(reward), after, ended, episode))
            state, over = after, ended or cut
    return Logged(*map(np.array, zip(*rows, strict=True)))


def _size(env: Any) -> int:
    return int(env.action_space.n)


def played(task: Task, act: Act, games: int = GAMES, most: int = 10**6) -> float:
    """Return the mean return of a policy."""
    import gymnasium

    envs = [gymnasium.make(task.env) for _ in range(games)]
    states = np.array([env.reset(seed=10**6 + k)[0] for k, env in enumerate(envs)])
    total, running, t = 0.0, np.arange(games), 0
    while len(running) and t < most:
        left = []
        for k, action in zip(running.tolist(), act(states[running], t), strict=True):
            states[k], reward, ended, cut, _ = envs[k].step(int(action))
            total += float(reward)
            if not (ended or cut):
                left.append(k)
        running, t = np.array(left, dtype=np.int64), t + 1
    return total / games


def table_of(log: Logged) -> tuple[dict[str, list[Any]], Schema]:
    """Return a log as columns, and its variables."""
    names = [f"x{j}" for j in range(log.state.shape[1])]
    first = np.flatnonzero(np.diff(log.episode, prepend=-1))
    time = np.arange(len(log.episode)) - first[log.episode]
    table: dict[str, list[Any]] = {name: log.state[:, j].tolist() for j, name in enumerate(names)}
    table |= {"episode": log.episode.tolist(), "time": time.tolist(), "a": log.action.tolist()}
    table |= {"u": log.reward.tolist(), "ended": log.ended.tolist()}
    return table, Schema([names, ["a"]], ["a"], "u")


def by_rspmn(log: Logged) -> tuple[Act, float, str]:
    """Learn and plan; return the policy, its CPU seconds, and what was learned."""
    table, schema = table_of(log)
    names = schema.information_sets[0]
    started = process_time()
    model, info = rspmn.learn_rspmn(rspmn.windows(table, schema, terminated="ended"))
    policy = model.policy(discount=DISCOUNT)
    policy.act_many({name: [0.0] for name in names})
    seconds = process_time() - started
    found = f"{info.interfaces} nodes of {', '.join(info.numbers.relevant)}"
    return (
        lambda x, _: policy.act_many(dict(zip(names, x.T.astype(float), strict=True))),
        seconds,
        found,
    )


def by_fitted_q(log: Logged, task: Task) -> tuple[Act, float, str]:
    """Fit Q by extra-trees, iteration by iteration."""
    from sklearn.ensemble import ExtraTreesRegressor

    actions = int(log.action.max()) + 1

    def values(model: Any, states: Array) -> Array:  # [n, actions]
        asked = [np.column_stack([states, np.full(len(states), a)]) for a in range(actions)]
        return np.stack([model.predict(x) for x in asked], axis=1)

    started, target = process_time(), log.reward
    features = np.column_stack([log.state, log.action])
    for number in range(task.iterations):
        model = ExtraTreesRegressor(30, min_samples_leaf=5, random_state=number, n_jobs=1)
        model.fit(features, target)
        best = values(model, log.after).max(axis=1)
        target = log.reward + DISCOUNT * np.where(log.ended, 0.0, best)
    seconds = process_time() - started
    return lambda x, _: values(model, x).argmax(axis=1), seconds, f"{task.iterations} iterations"


def hospital_row(seed: int) -> dict[str, Any]:
    """Learn from a hospital's practice, and treat its next patients."""
    log = log_of(HOSPITAL, HOSPITAL.episodes, seed)
    before, _ = earned(HOSPITAL, HOSPITAL.usual, 10_000, seed + 500)
    started = process_time()
    model, info = rspmn.learn_rspmn(rspmn.windows(log, HOSPITAL.schema, terminated="over"))
    policy = model.policy()
    promise = float(policy.value())
    seconds = process_time() - started
    nodes = f"{info.interfaces} nodes of {', '.join(info.numbers.relevant)}"
    return {
        "case": "hospital, 2500 stays", "seed": seed, "learner": "rspmn",
        "return": earned(HOSPITAL, HOSPITAL.follow(policy), 2000, seed + 1000)[0],
        "seconds": seconds, "found": f"{nodes}; practice {before:.1f}, promise {promise:.1f}",
    }  # fmt: skip


def learned_task(env: str, episodes: int, horizon: int, seed: int) -> tuple[RSPMN, float]:
    """Learn from a log of a task; return the model, and what its policy earns in a horizon."""
    task = next(t for t in TASKS if t.env.startswith(env) and t.episodes == episodes)
    table, schema = table_of(logged(task, seed))
    names = schema.information_sets[0]
    model, _ = rspmn.learn_rspmn(rspmn.windows(table, schema, terminated="ended"))
    policy = model.policy(horizon)

    def act(x: Array, t: int) -> Any:
        return policy.act_many(dict(zip(names, x.T.astype(float), strict=True)), t)

    return model, played(task, act, games=200, most=horizon)


def learned_hospital(stays: int, horizon: int, seed: int) -> tuple[RSPMN, float]:
    """Learn from a hospital's practice; return the model, and what its policy earns."""
    log = log_of(HOSPITAL, stays, seed)
    model, _ = rspmn.learn_rspmn(rspmn.windows(log, HOSPITAL.schema, terminated="over"))
    follow = HOSPITAL.follow(model.policy(horizon))
    return model, earned(HOSPITAL, follow, 3000, seed + 1000)[0]


def task_rows(task: Task, seed: int, fitted_q: bool) -> list[dict[str, Any]]:
    """Learn from a log of a task, and play."""
    log = logged(task, seed)
    found_by = {"rspmn": by_rspmn(log)}
    if fitted_q:
        found_by["fitted Q"] = by_fitted_q(log, task)
    rows = []
    for learner, (act, seconds, found) in found_by.items():
        rows.append({
            "case": task.name, "seed": seed, "learner": learner, "return": played(task, act),
            "seconds": seconds, "found": found,
        })  # fmt: skip
    return rows


def lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return a table of means over seeds."""
    found = ["| case | learner | return, mean (least to most) | CPU seconds | last seed |",
             "|---|---|---|---|---|"]  # fmt: skip
    for case, learner in dict.fromkeys((row["case"], row["learner"]) for row in rows):
        mine = [row for row in rows if (row["case"], row["learner"]) == (case, learner)]
        returns = [row["return"] for row in mine]
        spread = f"{np.mean(returns):.1f} ({min(returns):.1f} to {max(returns):.1f})"
        seconds = float(np.median([row["seconds"] for row in mine]))
        found.append(f"| {case} | {learner} | {spread} | {seconds:.1f} | {mine[-1]['found']} |")
    return found


def draw(path: Path) -> None:
    """Draw what was learned from 300 random episodes of CartPole, at rest in the middle."""
    from matplotlib.figure import Figure

    log = logged(TASKS[0], 0)
    act, _, _ = by_rspmn(log)
    angle, speed = (np.linspace(log.state[:, j].min(), log.state[:, j].max(), 160) for j in (2, 3))
    grid = np.stack([part.ravel() for part in np.meshgrid(angle, speed)], axis=1)
    chosen = np.asarray(act(np.hstack([np.zeros_like(grid), grid]), 0)).reshape(160, 160)
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.pcolormesh(angle, speed, chosen, cmap="PuOr", vmin=-0.4, vmax=1.4, rasterized=True)
    axes.plot(log.state[::8, 2], log.state[::8, 3], ".", color="0.25", ms=1)
    axes.set(xlabel="angle of the pole", ylabel="its speed")
    axes.set_title("Push right (purple) or left (orange); dots: logged states", fontsize=10)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Run the benchmark, or draw its picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--fitted-q", action="store_true", help="also fitted Q iteration")
    parser.add_argument("-o", "--output", type=Path, help="write numbers_figures.md there")
    parser.add_argument("--picture", type=Path, help="only draw what was learned from CartPole")
    asked = parser.parse_args()
    if asked.picture:
        draw(asked.picture)
        return
    rows: list[dict[str, Any]] = []
    for task in TASKS:
        for seed in range(asked.seeds if asked.only.lower() in task.name.lower() else 0):
            rows += task_rows(task, seed, asked.fitted_q)
            sys.stderr.write(f"{rows[-1]}\n")
    for seed in range(asked.seeds if asked.only.lower() in "hospital" else 0):
        rows.append(hospital_row(seed))
        sys.stderr.write(f"{rows[-1]}\n")
    text = "\n".join(lines(rows))
    sys.stdout.write(text + "\n")
    if asked.output:
        told = f"Written by `python {' '.join(sys.argv)}`, {asked.seeds} seeds.\n\n"
        (asked.output / "numbers_figures.md").write_text(f"# Figures of numbers\n\n{told}{text}\n")


if __name__ == "__main__":
    main()
