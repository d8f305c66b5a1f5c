"""From a log of random walks to a policy: the slippery lake, logged by a random policy.

Run it with `make demo`.
"""

from pathlib import Path

import rspmn
from rspmn.envs.frozen_lake import MAP_4X4, frozen_lake

ARROWS = {"left": "←", "down": "↓", "right": "→", "up": "↑"}


def main() -> None:
    """Learn from 100,000 short walks, and print what should have been done."""
    lake = frozen_lake()
    log = lake.generate(episodes=100_000, horizon=8, rng=0, layout="final")
    model, info = rspmn.learn_rspmn(log)
    print("\nA frozen lake: two times in three a step goes astray, holes end the walk, the goal")
    print("pays 1. The log: 100,000 walks of at most 8 random steps.")
    print(
        f"Learned in {sum(info.seconds.values()):.2f} s: {info.interfaces} interface nodes from "
        f"{info.steps} steps, of which {info.windows} are distinct.\n"
    )
    print("steps   MEU     true value   optimum")
    for horizon in (8, 20, 50, 100, 300):
        policy = model.policy(horizon, otherwise="left")
        meu, worth = float(model.meu(horizon=horizon)), rspmn.true_value(lake, policy, horizon)
        print(f"{horizon:5}   {meu:.4f}  {worth:.4f}       {lake.optimum(horizon):.4f}")
    policy = model.policy(300)
    print("\nThe first step of 300 (H are holes, G is the goal):")
    for row in range(4):
        cells = []
        for column in range(4):
            kind = MAP_4X4[row][column]
            known = kind in "HG"
            cells.append(kind if known else ARROWS[policy.act({"cell": 4 * row + column})])
        print("   " + " ".join(cells))
    print("\nThe value of each action beside the goal, and how often it was tried:")
    for action in policy.action_values({"cell": 14}):
        print(f"   {action.value:<6} {action.utility:.3f}   {action.steps:g} times")
    target = Path("build/demo/lake.json")
    target.parent.mkdir(parents=True, exist_ok=True)
    model.save(target)
    print(f"\nThe model: {target}")
    print(f"Ask it: .venv/bin/rspmn act {target} --state cell=14 --horizon 100")


if __name__ == "__main__":
    main()
