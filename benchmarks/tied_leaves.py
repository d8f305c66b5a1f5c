"""Draw a two-step network whose successors are products of tied factors.

`python benchmarks/tied_leaves.py docs/tied_leaves.svg`
"""

import sys
from pathlib import Path
from typing import Any

from rspmn.circuit import Categorical, Leaf, Max, Network, Product
from rspmn.envs.sys_admin import sys_admin
from rspmn.learn import learn_rspmn

COLOURS = {"m0'": "#0072b2", "m1'": "#d55e00"}


def main() -> None:
    """Learn two machines from 200 episodes, and draw what follows each branch."""
    _, info = learn_rspmn(sys_admin(2).generate(200, 20, 0, "final"), keep_stages=True)
    assert info.stages is not None
    assert info.stages.tied is not None
    tied, whole = info.stages.tied, info.stages.two_step
    print(f"{len(tied)} nodes with tied factors, {len(whole)} with a successor for each branch")
    print(info.future)
    if len(sys.argv) > 1:
        draw(tied, Path(sys.argv[1]))


def branches(network: Network, index: int, state: tuple[str, ...]) -> list[tuple[str, int]]:
    """Return the product of factors below every decision, and what leads there."""
    node = network.nodes[index]
    if isinstance(node, Max):
        return [
            (f"{' '.join(state)}\n{value}", factor)
            for value, child in zip(node.values, node.children, strict=True)
            for factor in network.nodes[child].children
            if isinstance(network.nodes[factor], Product)
        ]
    leaves = [network.nodes[child] for child in node.children]
    shown = {True: "up", False: "down"}
    here = tuple(
        shown[bool(leaf.distribution.values[0])]
        for leaf in leaves
        if isinstance(leaf, Leaf) and isinstance(leaf.distribution, Categorical)
    )
    return [b for child in node.children for b in branches(network, child, state + here)]


def draw(network: Network, path: Path) -> None:
    """Draw the branches above, the distributions that they share below."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "rspmn"
    from matplotlib import pyplot as plt

    found = branches(network, network.root, ())
    parents: dict[int, list[float]] = {}
    for x, (_, product) in enumerate(found):
        for leaf in network.nodes[product].children:
            parents.setdefault(leaf, []).append(float(x))
    leaves = sorted(parents, key=lambda leaf: (variable(network, leaf), sum(parents[leaf])))
    step = (len(found) - 1) / max(1, len(leaves) - 1)
    place = {leaf: number * step for number, leaf in enumerate(leaves)}
    figure, axes = plt.subplots(figsize=(13, 4.6))
    for leaf, above in parents.items():
        for left in above:
            colour = COLOURS[variable(network, leaf)]
            axes.plot([left, place[leaf]], [1, 0], color=colour, linewidth=0.9, alpha=0.7, zorder=1)
    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 9, "zorder": 3}
    for x, (text, _) in enumerate(found):
        axes.scatter(x, 1, s=330, color="white", edgecolor="black", zorder=2)
        axes.text(x, 1, "×", **style | {"fontsize": 12})
        axes.text(x, 1.3, text, **style)
    for leaf, middle in place.items():
        box = {"boxstyle": "round,pad=0.35", "fc": "white", "ec": COLOURS[variable(network, leaf)]}
        axes.text(
            middle, -0.12, f"{variable(network, leaf)}\n{chance(network, leaf)}", bbox=box, **style
        )
    axes.text(-0.9, 1.3, "m0 m1\nreboot", **style | {"ha": "right", "style": "italic"})
    axes.set(xlim=(-2, len(found) - 0.4), ylim=(-0.45, 1.5))
    axes.axis("off")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def variable(network: Network, index: int) -> str:
    """Return the variable of a leaf."""
    node = network.nodes[index]
    assert isinstance(node, Leaf)
    return node.variable


def chance(network: Network, index: int) -> str:
    """Return how likely it is that a machine is up."""
    node = network.nodes[index]
    assert isinstance(node, Leaf)
    assert isinstance(node.distribution, Categorical)
    values = dict(zip(node.distribution.values, node.distribution.probabilities, strict=True))
    return f"up: {values.get(True, 0.0):.3g}"


if __name__ == "__main__":
    main()
