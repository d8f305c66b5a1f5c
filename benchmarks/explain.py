"""The time of an explanation, and of what goes beyond the mean.

`python benchmarks/explain.py` learns Taxi (400 interface nodes), plans 50 steps, explains the
decision in many states and prints milliseconds of CPU, and whether the target is met. It also
prints what the distribution of the return and the policy for the tail take, on several domains.
With `-o docs` the two pictures of docs/explain.md are drawn.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from rspmn.envs.crossing_traffic import crossing_traffic
from rspmn.envs.elevators import elevators
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.envs.mdp import MDP
from rspmn.envs.taxi import taxi
from rspmn.explain.picture import as_file, draw_returns, steps_below
from rspmn.infer.policy import Policy
from rspmn.learn import learn_rspmn
from rspmn.values import Value

TARGET = 10.0  # milliseconds for an explanation, after planning


def milliseconds(call: Callable[[], object]) -> float:
    """Return the CPU time of a call."""
    clock = time.process_time()
    call()
    return 1e3 * (time.process_time() - clock)


def learned(world: MDP, episodes: int, horizon: int) -> Policy:
    """Return the best policy of a model learned from a log."""
    return learn_rspmn(world.generate(episodes, horizon, 0))[0].policy(horizon)


def explanations(policy: Policy, states: int) -> None:
    """Print the time of explanations in states of the log."""
    table = policy.table()
    names = policy.model.schema.information_sets[0]
    nodes = np.random.default_rng(0).integers(0, len(table["node"]), states).tolist()
    asked: list[dict[str, Value]] = [{n: table[n][k] for n in names} for k in nodes]
    first = milliseconds(lambda: policy.explain(asked[0], 3))
    found = [milliseconds(lambda s=state: policy.explain(s, 3)) for state in asked]  # type: ignore[misc]
    told = [milliseconds(lambda s=state: str(policy.explain(s, 3))) for state in asked]  # type: ignore[misc]
    median, high = statistics.median(found), float(np.quantile(found, 0.95))
    print(f"Taxi, {policy.model.num_state_interfaces} interface nodes, {states} states, ms of CPU:")
    print(f"  first (draws the posterior)  {first:8.1f}")
    print(f"  explain, median              {median:8.2f}   95 %: {high:.2f}")
    print(f"  as text, median              {statistics.median(told):8.2f}")
    print(f"  target {TARGET:g} ms: {'met' if median < TARGET else 'missed'}")


def beyond_the_mean(episodes: int) -> None:
    """Print the return and its tail on several domains."""
    print(f"\nreturns from {episodes} episodes; worst: the mean of the worst tenth")
    print("domain            steps   mean   worst    ms | tail: mean   worst      ms")
    worlds: list[tuple[MDP, int]] = [
        (crossing_traffic(), 8), (elevators(), 8), (frozen_lake(), 50), (taxi(), 50),
    ]  # fmt: skip
    for world, horizon in worlds:
        policy = learned(world, episodes, horizon)
        taken = milliseconds(lambda p=policy: p.returns())  # type: ignore[misc]
        planned = milliseconds(lambda p=policy: p.tail(0.1))  # type: ignore[misc]
        plain, tail = policy.returns(), policy.tail(0.1).returns()
        print(
            f"{world.name:<16}  {horizon:>5}  {plain.mean:5.2f}  {plain.cvar(0.1):6.2f}  "
            f"{taken:4.0f} |  {tail.mean:8.2f}  {tail.cvar(0.1):6.2f}  {planned:6.0f}"
        )


def draw(folder: Path) -> None:
    """Draw the pictures of docs/explain.md."""
    lake = learned(frozen_lake(), 500, 30)
    found = lake.explain({"cell": 14})
    (folder / "explain.svg").write_bytes(found.picture("svg"))
    policy = learned(crossing_traffic(), 2000, 8)
    axes = draw_returns(policy.returns())
    axes.lines[0].set_label("highest mean")
    tail = policy.tail(0.1).returns()
    axes.step(*steps_below(tail), where="post", color="#c0504d", label="best worst tenth")
    axes.legend(loc="center left", frameon=False)
    (folder / "returns.svg").write_bytes(as_file(axes, "svg"))


def main() -> None:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--states", type=int, default=200)
    parser.add_argument("-o", "--output", type=Path, help="a folder for pictures")
    arguments = parser.parse_args()
    explanations(learned(taxi(), arguments.episodes, 50), arguments.states)
    beyond_the_mean(arguments.episodes)
    if arguments.output:
        draw(arguments.output)


if __name__ == "__main__":
    main()
