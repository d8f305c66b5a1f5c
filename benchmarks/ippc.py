"""Instances of the planning competition IPPC 2011: learned policies beside the exact optimum.

`python benchmarks/ippc.py --episodes 100 1000 --seeds 2 -o docs` learns from random episodes of
instances whose states can be enumerated (`rddl.py`), and writes docs/ippc_figures.md: what the
policies of a table of counts and of `learn_rspmn` are worth, as shares of the way from the random
policy to the optimal one, and the CPU seconds of learning and of the policy. A case with a number,
Elevators-2:10000, is learned from that many episodes. `--first` is the seed of the first log.
`--profile` prints the five functions in which learning spends most, case by case. `--learning` only
learns, and writes docs/ippc_learning.md: the CPU seconds of learning and of its stages' shares. It
needs the extra `rddl`.
"""

import argparse
import cProfile
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import CodeType
from typing import TypeVar

import numpy as np
from rddl import Instance

from rspmn import Episodes, Windows, learn_rspmn
from rspmn.envs.mdp import MDP
from rspmn.evaluate import Tabular, true_value
from rspmn.learn.successors.factored import FutureInfo

CASES = [
    "Elevators-2", "SkillTeaching-3", "CrossingTraffic-3", "GameOfLife-2", "SysAdmin-1",
]  # fmt: skip
#: Where nothing is evaluated, a longer log too.
LEARNED = ["Elevators-2", "Elevators-2:10000", *CASES[1:]]
#: Functions that `--profile` lists.
DEAREST = 5
T = TypeVar("T")


@dataclass(frozen=True)
class World:
    """An instance, such as Elevators-2, and the values between which policies are placed."""

    case: str

    @cached_property
    def mdp(self) -> MDP:
        """The instance."""
        domain, number = self.case.split("-")
        return Instance.read(domain, int(number)).mdp()

    @cached_property
    def random(self) -> float:
        """The value of the random policy."""
        return self.mdp.evaluate(None, self.mdp.horizon)

    @cached_property
    def best(self) -> float:
        """The value of the best policy."""
        return self.mdp.optimum(self.mdp.horizon)

    def share(self, value: float) -> float:
        """Return how far of the way from random to optimal a value is."""
        return (value - self.random) / (self.best - self.random)


@dataclass(frozen=True)
class Run:
    """What was learned from one log."""

    case: str
    states: int
    actions: int
    episodes: int
    seed: int
    windows: int
    nodes: int
    beyond: int  # of them, states that the log does not have
    table: float  # this and the three below: share of the way from random to optimal
    learned: float
    of_tried: float  # the best policy that does what was tried in each state
    untried: float  # if the policy may do what was never tried in a state
    table_seconds: float
    learn_seconds: float
    policy_seconds: float
    successors: str
    slowest: str  # the stages of learning that took longest, and their shares of the time


def timed(function: Callable[[], T]) -> tuple[T, float]:
    """Return what a function returns, and the CPU seconds that it took."""
    start = time.process_time()
    return function(), time.process_time() - start


def best_of_tried(mdp: MDP, log: Episodes) -> float:
    """Return the value of the best policy that does what the log has in each state.

    In states in which the log has no decision, it may do everything.
    """
    table, shape = log.to_long(), (len(mdp.states), len(mdp.actions))
    place = [{joint: k for k, joint in enumerate(of)} for of in (mdp.states, mdp.actions)]
    names = mdp.schema.information_sets[0], mdp.schema.decisions
    tried = np.zeros(shape, dtype=bool)
    rows = zip(*(zip(*(table[name] for name in part), strict=True) for part in names), strict=True)
    for state, made in set(rows):
        if made in place[1]:  # there is none after the last step
            tried[place[0][state], place[1][made]] = True
    tried |= ~tried.any(axis=1, keepdims=True)
    of_transitions = np.repeat(tried.ravel(), np.diff(mdp.indptr))
    worst = 1e6 * (1 + np.abs(mdp.rewards).max())
    shunned = replace(mdp, rewards=np.where(of_transitions, mdp.rewards, -worst))
    return shunned.optimum(mdp.horizon)


def run(world: World, episodes: int, seed: int) -> Run:
    """Learn from one log."""
    mdp = world.mdp
    log, steps = mdp.generate(episodes, mdp.horizon, seed, "final"), mdp.horizon
    tabled, table_seconds = timed(lambda: Tabular.fit(log).policy_for(mdp, steps))
    (model, info), learn_seconds = timed(lambda: learn_rspmn(log))
    policy, policy_seconds = timed(lambda: model.policy(steps))
    _, act_seconds = timed(lambda: policy.act(_first_state(mdp)))
    learned = true_value(mdp, policy, steps)
    daring = learned
    if model.untried is not None:
        daring = true_value(mdp, model.policy(steps, offer="all"), steps)
    return Run(
        mdp.name, len(mdp.states), len(mdp.actions), episodes, seed, info.windows,
        model.num_state_interfaces, info.beyond, world.share(mdp.evaluate(tabled, steps)),
        world.share(learned), world.share(best_of_tried(mdp, log)), world.share(daring),
        table_seconds, learn_seconds, policy_seconds + act_seconds, _successors(info.future),
        _slowest(info.seconds),
    )  # fmt: skip


@dataclass(frozen=True)
class Learning:
    """What it takes to learn from one log."""

    case: str
    episodes: int
    windows: int
    nodes: int
    edges: int
    beyond: int
    learn_seconds: float
    slowest: str


def learning(world: World, episodes: int, seed: int) -> Learning:
    """Learn from one log, and nothing else."""
    log = world.mdp.generate(episodes, world.mdp.horizon, seed, "final")
    (model, info), seconds = timed(lambda: learn_rspmn(log))
    return Learning(
        world.mdp.name, episodes, info.windows, len(model.template), model.template.num_edges,
        info.beyond, seconds, _slowest(info.seconds),
    )  # fmt: skip


def _first_state(mdp: MDP) -> dict[str, object]:
    state = mdp.states[int(mdp.start.argmax())]
    return dict(zip(mdp.schema.state_variables, state, strict=True))


def _successors(future: FutureInfo) -> str:
    """Return how successors were weighed."""
    if future.given_up:
        return f"counts alone: {future.given_up}"
    if future.spread:
        return f"{future.spread} products, κ = {future.strength:g}"
    return f"multiplied out, κ = {future.strength:g}"


def _slowest(seconds: dict[str, float]) -> str:
    total = sum(seconds.values())
    first = sorted(seconds, key=lambda stage: -seconds[stage])[:2]
    return ", ".join(f"{stage} {seconds[stage] / total:.0%}" for stage in first)


def dearest(log: Episodes) -> list[str]:
    """Return the functions in which learning from a log spends most, without what they call."""
    windows = Windows.from_episodes(log)
    profile = cProfile.Profile(time.process_time)
    profile.runcall(learn_rspmn, windows)
    own = sorted(profile.getstats(), key=lambda entry: -entry.inlinetime)[:DEAREST]
    return [f"{e.inlinetime:7.2f} s in {e.callcount:8d} calls: {_where(e.code)}" for e in own]


def _where(code: CodeType | str) -> str:
    """Return the name of a function, and its place if it has one."""
    if isinstance(code, str):
        return code
    return f"{Path(code.co_filename).name}:{code.co_firstlineno} {code.co_qualname}"


HEAD = (
    "instance", "states", "actions", "episodes", "seed", "windows", "interface nodes",
    "beyond the log", "table", "learned", "best of tried", "untried allowed", "table, s",
    "learn, s", "policy, s", "successors", "stages",
)  # fmt: skip

INTRODUCTION = """# Instances of IPPC 2011

Made by `{command}`. Random episodes of the instance's own horizon; the state after the last step is
kept. "table" (a table of counts, `rspmn.evaluate.Tabular`), "learned" (`learn_rspmn` as it is by
default) and "untried allowed" (the same model, whose policy may do what was never tried in a state)
are exact values of policies, as shares of the way from the random policy, 0, to the optimal one, 1.
"best of tried" is the best policy, by the instance's true probabilities, that does in each state of
the log what the log has there: no policy learned by default can be worth more.
Where a policy knows nothing of a state it does nothing, the table's too. "beyond the log" are those
of the interface nodes that are states which the log does not have, but factors say may follow
([factored futures](factored_futures.md#states-beyond-the-log)). Seconds are CPU seconds on
one core, those of the table with its policy. "stages" are those in which learning spends most.

"""


LEARNING_HEAD = (
    "instance", "episodes", "windows", "nodes", "edges", "beyond the log", "learn, s", "stages",
)  # fmt: skip

LEARNING = """# Learning from instances of IPPC 2011

Made by `{command}`: CPU seconds of learning on one core, the sizes of templates, and the stages in
which learning spends most. What the policies are worth: [ippc_figures.md](ippc_figures.md).

"""


def written(head: Sequence[str], runs: Sequence[object]) -> str:
    """Return a table of runs, data classes whose fields are its columns."""
    lines = [tuple(head), ("---",) * len(head)]
    for done in runs:
        cells = [f"{c:.3f}" if isinstance(c, float) else str(c) for c in vars(done).values()]
        lines.append(tuple(cells))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def main() -> None:
    """Run, print, and write the table after each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", help="such as Elevators-2, or Elevators-2:10000")
    parser.add_argument("--episodes", nargs="+", type=int, default=[100])
    parser.add_argument("--seeds", type=int, default=1, help="number of logs")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first log")
    parser.add_argument("--profile", action="store_true", help="only say where learning spends")
    parser.add_argument("--learning", action="store_true", help="only learn")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    introduction, file = INTRODUCTION, "ippc_figures.md"
    head: Sequence[str] = HEAD
    if options.learning:
        introduction, head, file = LEARNING, LEARNING_HEAD, "ippc_learning.md"
    runs: list[Run | Learning] = []
    for case in options.cases or (LEARNED if options.learning else CASES):
        name, _, own = case.partition(":")
        world = World(name)
        for episodes in [int(own)] if own else options.episodes:
            if options.profile:
                log = world.mdp.generate(episodes, world.mdp.horizon, 0, "final")
                print(f"{case}, {episodes} episodes", *dearest(log), sep="\n", flush=True)
                continue
            for seed in range(options.first, options.first + options.seeds):
                runs.append((learning if options.learning else run)(world, episodes, seed))
                print(runs[-1], flush=True)
                if options.output is not None:
                    text = introduction.format(command=_command()) + written(head, runs)
                    (options.output / file).write_text(text, encoding="utf-8")


def _command() -> str:
    return " ".join(["python", *sys.argv])


if __name__ == "__main__":
    main()
