"""The time of a decision in states of numbers: soft borders, boxes, partial states; many at once.

`python benchmarks/act.py` makes models whose roots are the cells of a grid, plans ten steps, and
prints microseconds of CPU for each `act` and `action_values`, rows a second for `act_many`, and
whether the targets are met.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from rspmn.infer.policy import Policy
from soft_models import soft_model, soft_states

ACT = 200e-6  # seconds
ROWS = {True: 200_000, False: 1_000_000}  # a second, for soft borders and for boxes


def seconds(call: Callable[[object], object], states: list[dict[str, float | None]]) -> float:
    """Return the median time of a call."""
    taken = []
    for state in states:
        clock = time.process_time()
        call(state)
        taken.append(time.process_time() - clock)
    return statistics.median(taken)


def rows_a_second(policy: Policy, rows: int, rng: np.random.Generator) -> float:
    """Return how many complete states are decided in a second, each of them different."""
    few = soft_states(rng, policy.model, 1000)
    columns = {}
    for name in few[0]:
        numbers = np.array([state[name] for state in few], dtype=float)
        columns[name] = rng.uniform(numbers.min(), numbers.max(), rows)
    policy.act_many({name: column[:100] for name, column in columns.items()}, otherwise=0)
    clock = time.process_time()
    policy.act_many(columns, otherwise=0)
    return rows / (time.process_time() - clock)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variables", type=int, default=4)
    parser.add_argument("--knots", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--states", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=500_000)
    arguments = parser.parse_args()
    for knots in arguments.knots:
        for soft in (True, False):
            rng = np.random.default_rng(0)
            model = soft_model(rng, knots, arguments.variables, soft=soft)
            clock = time.process_time()
            model.policy(10).act({})
            planned = time.process_time() - clock
            kind = "soft borders" if soft else "boxes"
            print(f"{model.num_interfaces} roots, {kind}: the first decision {planned:.2f} s")
            for missing in (0.0, 0.25, 0.5):
                states = soft_states(rng, model, arguments.states, missing)
                policy = model.policy(10, otherwise=0)
                policy.act({})  # plans
                new = seconds(policy.act, states)
                again = seconds(policy.act, states)
                values = seconds(policy.action_values, states)
                verdict = "met" if max(new, again) <= ACT else "MISSED"
                print(
                    f"  {missing:.0%} missing: act {new * 1e6:.0f} µs, in a cell met before "
                    f"{again * 1e6:.0f} µs, action_values {values * 1e6:.0f} µs; "
                    f"target of act {ACT * 1e6:.0f} µs: {verdict}"
                )
            found = rows_a_second(policy, arguments.rows, rng)
            verdict = "met" if found >= ROWS[soft] else "MISSED"
            print(f"  act_many: {found:,.0f} rows/s, target {ROWS[soft]:,}: {verdict}")


if __name__ == "__main__":
    main()
