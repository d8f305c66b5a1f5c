"""Larger instances of IPPC 2011, whose states can only be simulated.

`python benchmarks/ippc_large.py --episodes 30 -o docs` learns from random episodes and
writes docs/ippc_large_figures.md: what the policies of a table of counts and of `learn_rspmn` earn
in simulated episodes, beside the random policy. Where a policy knows nothing of a state it does
nothing, the table's too. It needs the extra `rddl`.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from ippc import timed, written
from rddl import Instance, snake

from rspmn import Episodes, learn_rspmn
from rspmn.data.tables import as_table
from rspmn.evaluate import Tabular
from rspmn.infer.compiled.beliefs import NONE
from rspmn.infer.policy import Policy
from rspmn.types import Array, Bools, Ints

CASES = ["SkillTeaching-5", "SysAdmin-3", "GameOfLife-4"]
#: Chooses an action for each of some states [n, V] at time t.
Acting = Callable[[Bools, int], Ints]


@dataclass(frozen=True)
class Run:
    """What was learned from one log; values are means of simulated episodes."""

    case: str
    booleans: int
    actions: int
    episodes: int
    seed: int
    states: int  # that the log has
    nodes: int
    beyond: int
    random: float
    table: float
    learned: float
    untried: float
    error: float  # the largest standard error of these
    known_to_table: float  # the share of steps in which the table knows the state
    known_to_learned: float
    learn_seconds: float
    policy_seconds: float


@dataclass(frozen=True, eq=False)
class Simulated:
    """Episodes: states [H + 1, n, V], actions [H, n] and rewards [H, n]."""

    states: Bools
    actions: Ints
    rewards: Array

    @property
    def mean(self) -> float:
        """The mean return."""
        return float(self.rewards.sum(axis=0).mean())

    @property
    def error(self) -> float:
        """The standard error of the mean return."""
        return float(self.rewards.sum(axis=0).std(ddof=1) / np.sqrt(self.rewards.shape[1]))


def simulate(instance: Instance, act: Acting, episodes: int, seed: int) -> Simulated:
    """Draw episodes."""
    rng = np.random.default_rng(seed)
    states = [np.repeat(instance.start[None], episodes, axis=0)]
    actions, rewards = [], []
    for t in range(instance.horizon):
        actions.append(act(states[-1], t))
        made = instance.actions[actions[-1]]
        rewards.append(instance.rewards(states[-1], made))
        states.append(rng.random(states[-1].shape) < instance.chances(states[-1], made))
    return Simulated(np.array(states), np.array(actions), np.array(rewards))


def at_random(instance: Instance, seed: int) -> Acting:
    """Return the random policy."""
    rng = np.random.default_rng(seed)
    return lambda states, _: rng.integers(len(instance.actions), size=len(states))


def log_of(instance: Instance, found: Simulated) -> Episodes:
    """Return episodes as a log, cut after the last step."""
    steps, episodes = found.actions.shape
    made = instance.actions[found.actions]
    table: dict[str, object] = {
        "episode": np.tile(np.arange(episodes), steps),
        "time": np.repeat(np.arange(steps), episodes),
        "reward": found.rewards.ravel(),
    }
    for k, name in enumerate(instance.fluents):
        table[snake(name)] = found.states[:-1, :, k].ravel()
    for k, name in enumerate(instance.deciding):
        table[snake(name)] = made[:, :, k].ravel()
    return Episodes.from_long(table, instance.schema, ending="cut")


class ByTable:
    """The policy of a table; it does nothing where the table does not have a state."""

    def __init__(self, instance: Instance, table: Tabular) -> None:
        numbers = {tuple(a): k for k, a in enumerate(instance.actions.tolist())}
        action = [numbers[tuple(map(bool, made))] for made in table.decisions]
        self.actions = np.append(action, 0)  # -1 finds the last
        names = [snake(name) for name in instance.fluents]
        states = np.array([table.states.columns[name].decode() for name in names]).T.astype(bool)
        self.place = {row.tobytes(): k for k, row in enumerate(np.packbits(states, axis=1))}
        self.policy = table.solve(instance.horizon)[1]
        self.asked = self.known = 0

    def __call__(self, states: Bools, t: int) -> Ints:
        """Return the action in each state."""
        place = [self.place.get(row.tobytes(), -1) for row in np.packbits(states, axis=1)]
        at = np.array(place)
        chosen = np.where(at >= 0, self.policy[t][at], -1)
        self.asked, self.known = self.asked + len(at), self.known + int((chosen >= 0).sum())
        return self.actions[chosen]


class ByModel:
    """The policy of a model; it does nothing where the model knows nothing of a state."""

    def __init__(self, instance: Instance, policy: Policy) -> None:
        self.policy, self.names = policy, [snake(name) for name in instance.fluents]
        self.deciding = [snake(name) for name in instance.deciding]
        self.numbers = {tuple(a): k for k, a in enumerate(instance.actions.tolist())}
        self.nothing: dict[str, bool] = dict.fromkeys(self.deciding, False)
        self.asked = self.known = 0

    def __call__(self, states: Bools, t: int) -> Ints:
        """Return the action in each state."""
        table = {name: states[:, k] for k, name in enumerate(self.names)}
        made = self.policy.act_many(table, t, otherwise=self.nothing)
        rows = zip(*(made[name].tolist() for name in self.deciding), strict=True)
        self.asked += len(states)
        routes = self.policy.index.routes(as_table(table))
        self.known += int((routes.node[routes.state] != NONE).sum())
        return np.array([self.numbers[tuple(map(bool, row))] for row in rows])


def run(case: str, episodes: int, seed: int, drawn: int) -> Run:
    """Learn from one log, and simulate what was learned."""
    domain, number = case.split("-")
    instance = Instance.read(domain, int(number))
    log = log_of(instance, simulate(instance, at_random(instance, seed), episodes, seed))
    table = Tabular.fit(log)
    (model, info), learn_seconds = timed(lambda: learn_rspmn(log))
    policy, policy_seconds = timed(lambda: model.policy(instance.horizon))
    by_table, by_model = ByTable(instance, table), ByModel(instance, policy)
    daring = ByModel(instance, model.policy(instance.horizon, offer="all"))
    acting: list[Acting] = [at_random(instance, 1), by_table, by_model, daring]
    found = [simulate(instance, act, drawn, 1) for act in acting]
    random, tabled, learned, untried = (part.mean for part in found)
    return Run(
        f"{domain} {number}", len(instance.fluents), len(instance.actions), episodes, seed,
        table.states.count, model.num_state_interfaces, info.beyond, random, tabled, learned,
        untried, max(part.error for part in found), by_table.known / by_table.asked,
        by_model.known / by_model.asked, learn_seconds, policy_seconds,
    )  # fmt: skip


HEAD = (
    "instance", "booleans", "actions", "episodes", "seed", "states in the log", "interface nodes",
    "beyond the log", "random", "table", "learned", "untried allowed", "standard error",
    "known to table", "known to learned", "learn, s", "policy, s",
)  # fmt: skip

INTRODUCTION = """# Larger instances of IPPC 2011

Made by `{command}`. Their states are too many to enumerate, so that policies are simulated: means
of {drawn} episodes of the instance's own horizon, the same draws for all policies. Logs are random
episodes, cut after the last step. "table" is the policy of a table of counts, "learned" that of
`learn_rspmn`; both do nothing in states that they do not know. "known to" is the share of the steps
of its own episodes in which a policy knows the state. Seconds are CPU seconds on one core.

"""


def main() -> None:
    """Run, print, and write the table after each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", default=CASES, help="as SysAdmin-3:10000")
    parser.add_argument("--episodes", nargs="+", type=int, default=[300])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--drawn", type=int, default=300, help="episodes that are simulated")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    runs: list[Run] = []
    for case in options.cases:
        name, _, own = case.partition(":")
        for episodes in [int(own)] if own else options.episodes:
            for seed in range(options.seeds):
                runs.append(run(name, episodes, seed, options.drawn))
                print(runs[-1], flush=True)
                if options.output is not None:
                    command = " ".join(["python", *sys.argv])
                    text = INTRODUCTION.format(command=command, drawn=options.drawn)
                    path = options.output / "ippc_large_figures.md"
                    path.write_text(text + written(HEAD, runs), encoding="utf-8")


if __name__ == "__main__":
    main()
