"""From a table of past decisions to the best ones: an oil wildcatter's 100,000 drillings.

Run it with `make demo`.
"""

import csv
from pathlib import Path
from typing import Any

import numpy as np

import rspmn

# The ground: how likely each hole is, what the seismic test shows of it, what drilling earns.
HOLES = {"dry": 0.5, "wet": 0.3, "soaking": 0.2}
SHOWS = {"dry": [0.6, 0.3, 0.1], "wet": [0.3, 0.4, 0.3], "soaking": [0.1, 0.4, 0.5]}
RESULTS = ["none", "open", "closed"]
PROFIT = {"dry": -70, "wet": 50, "soaking": 200}
TEST_COST = 10

# The optimum is to test, and to drill unless the result is "none":
# 0.35 (open) and 0.24 (closed) of the tests earn 11.5 + 21 together, less 10 for the test.
OPTIMUM = 22.5


def drillings(number: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return a table of past decisions, all made by tossing a coin."""
    hole = rng.choice(list(HOLES), number, p=list(HOLES.values()))
    test, drill = rng.choice(["yes", "no"], (2, number))
    result = np.full(number, "not tested")
    for name, chances in SHOWS.items():
        tested = (hole == name) & (test == "yes")
        result[tested] = rng.choice(RESULTS, tested.sum(), p=chances)
    earned = np.where(drill == "yes", [PROFIT[name] for name in hole.tolist()], 0)
    profit = earned - TEST_COST * (test == "yes")
    return {"test": test, "result": result, "drill": drill, "hole": hole, "profit": profit}


def main() -> None:
    """Learn from random decisions, and print what should have been done."""
    table = drillings(100_000, np.random.default_rng(0))
    # What is known when: first decide on the test, see its result, decide to drill, see the hole.
    order = [["test"], ["result"], ["drill"], ["hole"]]
    schema = rspmn.Schema(order, decisions=["test", "drill"], utility="profit")
    model, info = rspmn.learn_spmn(table, schema)
    print("\nAn oil wildcatter: test the ground or not, see the result, drill or not.")
    print(
        f"From {info.rows:g} drillings decided by a coin, {info.nodes} nodes were learned "
        f"in {info.seconds:.2f} s."
    )
    print(f"Best: {float(model.meu()):.2f} on average; the true optimum is {OPTIMUM:g}.\n")
    print("The value of each choice:")
    known = [{}, {"test": "no", "result": "not tested"}]
    known += [{"test": "yes", "result": result} for result in RESULTS]
    for evidence in known:
        best = {action.value for action in model.best_decisions(evidence)}
        for action in model.action_values(evidence):
            mark = "*" if action.value in best else " "
            given = ", ".join(f"{k} = {v}" for k, v in evidence.items()) or "at first"
            print(
                f"  {given:<30} {mark} {action.decision} = {action.value!s:<4}"
                f"{action.utility:8.2f}   ({action.steps:g} rows)"
            )
    folder = Path("build/demo")
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "oil.json")
    (folder / "oil.svg").write_text(model.network.svg(), encoding="utf-8")
    schema.save(folder / "oil.toml")
    with (folder / "oil.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([table, *zip(*table.values(), strict=True)])
    print(f"\nThe model and its picture: {folder}/oil.json, {folder}/oil.svg")
    print(f"The table and its schema: {folder}/oil.csv, {folder}/oil.toml")
    print(f"Ask the model: .venv/bin/rspmn act {folder}/oil.json --state test=yes result=open")


if __name__ == "__main__":
    main()
