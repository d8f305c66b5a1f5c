"""The paper's running example (Sec. 4): a 2×2 grid, as an RSPMN written by hand.

    (0,0) start    (1,0) -10
    (0,1)          (1,1) +10, the goal

X is the column and Y the row; the agent moves in one of the four directions or does nothing,
and stays where it is if it would leave the grid. Our reading of the rewards, on which the
paper is silent: a tuple's utility is that of its own state, R(x, y), less 1 for the
transition that it makes, whatever the action; the goal does not end the episode. So a step
earns -1 in (0,0) and (0,1), -11 in (1,0) and 9 in (1,1).

This is the template of the paper's last figure: four root interface nodes, one for each cell,
and below each action the utility and an S_L with the single interface node that follows.
"""

from rspmn.circuit import Categorical, NetworkBuilder
from rspmn.end_nodes import weighted_top
from rspmn.model import RSPMN
from rspmn.schema import Schema

CELLS = [(0, 0), (0, 1), (1, 0), (1, 1)]  # (x, y) of interface nodes 0 to 3
MOVES = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0), "noop": (0, 0)}
REWARD = {(1, 0): -10, (1, 1): 10}


def paper_grid() -> RSPMN:
    """Return the final template of the 2×2 grid, starting in (0,0).

    >>> paper_grid().meu(horizon=4) == 16  # -1, -1, 9, 9
    True
    """
    schema = Schema(
        [["x", "y"], ["action"]], ["action"], "reward", kinds={"x": "integer", "y": "integer"}
    )
    builder = NetworkBuilder()
    roots = []
    for cell in CELLS:
        utility = builder.utility("reward", REWARD.get(cell, 0) - 1)
        branches = {
            move: builder.product([utility, _certainly(builder, CELLS.index(_moved(cell, move)))])
            for move in MOVES
        }
        x, y = (builder.leaf(n, Categorical.certain(v)) for n, v in zip("xy", cell, strict=True))
        roots.append(builder.product([x, y, builder.max("action", branches)]))
    return RSPMN(schema, weighted_top([1.0, 0.0, 0.0, 0.0]), builder.build(*roots))


def _certainly(builder: NetworkBuilder, interface: int) -> int:
    """Add an S_L of which pruning has left one latent."""
    return builder.sum([builder.latent(interface)], [1.0])


def _moved(cell: tuple[int, int], move: str) -> tuple[int, int]:
    x, y = cell[0] + MOVES[move][0], cell[1] + MOVES[move][1]
    return (x, y) if (x, y) in CELLS else cell
