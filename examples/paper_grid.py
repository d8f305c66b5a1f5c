"""The paper's 2x2 grid: maximum expected utility, policy and picture of a hand-built RSPMN.

Run it with `make demo`.
"""

from pathlib import Path

from rspmn.envs.paper_grid import CELLS, paper_grid

ARROWS = {"up": "↑", "down": "↓", "left": "←", "right": "→", "noop": "·"}


def main() -> None:
    """Print the MEU and the best actions of each cell, and draw the networks."""
    model = paper_grid()
    print("A 2x2 grid: start in (0,0); a step costs 1, one in (1,0) another 10, and one in")
    print("the goal (1,1) earns 10. The model: 4 interface nodes, one for each cell,")
    print(f"{len(model.template)} nodes in the template, {len(model.top)} in the top network.\n")

    print("MEU and best actions, by steps to go:")
    print("          " + "".join(f"{cell!s:>14}" for cell in CELLS))
    for horizon in range(1, 5):
        cells = []
        for x, y in CELLS:
            state = {"x": x, "y": y}
            best = model.best_decisions(state, horizon)
            arrows = "".join(ARROWS[str(action.value)] for action in best)
            cells.append(f"{float(model.meu(state, horizon)):8g} {arrows:<5}")
        print(f"  T = {horizon}   " + "".join(cells))

    print(f"\nFrom the start, T = 4: {float(model.meu(horizon=4)):g} = -1 - 1 + 9 + 9.")
    print("The value of each first action:")
    for action in model.action_values({"x": 0, "y": 0}, horizon=4):
        print(f"  {action.value!s:>5} {action.utility:5g}")

    folder = Path("build/demo")
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "grid.json")
    pictures = []
    for name, network in {
        "template": model.template,
        "top": model.top,
        "unfolded": model.unfold(2),
    }.items():
        (folder / f"{name}.svg").write_text(network.svg(), encoding="utf-8")
        pictures.append(f"{folder}/{name}.svg")
    print(f"\nThe model: {folder}/grid.json")
    print(f"Pictures of its networks: {', '.join(pictures)}")
    print(f"Ask the model: .venv/bin/rspmn act {folder}/grid.json --state x=0 y=0 --horizon 4")


if __name__ == "__main__":
    main()
