"""From a table of past decisions to the best ones: an oil wildcatter's 100,000 drillings.

Run it with `make demo`.
"""

from pathlib import Path

from rspmn.envs.single_shot import oil_wildcatter
from rspmn.learn import learn_spmn


def main() -> None:
    """Learn from random decisions, and print what should have been done."""
    problem = oil_wildcatter()
    table = problem.sample(100_000, rng=0)
    model, info = learn_spmn(table, problem.schema)
    print("\nAn oil wildcatter: test the ground or not, see the result, drill or not.")
    print(
        f"From {info.rows:g} drillings decided by a coin, {info.nodes} nodes were learned "
        f"in {info.seconds:.2f} s."
    )
    print(
        f"Best: {float(model.meu()):.2f} on average; the true optimum is {problem.optimum():g}.\n"
    )
    print("What each choice is worth:")
    known = [{}, {"test": "no", "result": "not tested"}]
    known += [{"test": "yes", "result": result} for result in ("none", "open", "closed")]
    for evidence in known:
        best = {action.value for action in model.best_decisions(evidence)}
        for action in model.expected_utilities(evidence):
            mark = "*" if action.value in best else " "
            given = ", ".join(f"{k} = {v}" for k, v in evidence.items()) or "at first"
            print(
                f"  {given:<30} {mark} {action.decision} = {action.value!s:<4}"
                f"{action.utility:8.2f}   ({action.steps:g} rows)"
            )
    folder = Path("build/demo")
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "oil.json")
    (folder / "oil.png").write_bytes(model.network.png())
    (folder / "oil.svg").write_text(model.network.svg(), encoding="utf-8")
    print(f"\nThe model and its picture: {folder}/oil.json, oil.svg, oil.png")


if __name__ == "__main__":
    main()
