"""FrozenLake, slippery, of any map: gymnasium's rules."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rspmn.envs.mdp import MDP
from rspmn.errors import DataError
from rspmn.schema import Schema
from rspmn.types import Array, Bools, Ints

MAP_4X4 = ("SFFF", "FHFH", "FFFH", "HFFG")
MOVES = {"left": (0, -1), "down": (1, 0), "right": (0, 1), "up": (-1, 0)}  # row, column


def frozen_lake(lake: Sequence[str] = MAP_4X4, random_starts: bool = False) -> MDP:
    """Return the lake: slide from S over frozen F to the goal G, past the holes H.

    Cells are counted row by row. The move is the one chosen or one of the two at right angles
    to it, each with 1/3; off the lake it stays where it is. Entering the goal earns 1; goal and
    holes end the episode. With `random_starts` every other cell is as likely to be the first.

    >>> round(frozen_lake().optimum(8), 6)
    0.0189
    """
    tiles = _tiles(lake)
    over = np.isin(tiles.ravel(), ["H", "G"])
    start = ~over if random_starts else tiles.ravel() == "S"
    kept = _reached(_neighbours(tiles.shape), over, start)
    place = np.cumsum(kept) - 1  # of a cell among those that are kept
    after = place[_neighbours(tiles.shape)[kept]]  # [S, 4]
    after[over[kept]] = np.arange(len(after))[over[kept], None]
    indptr, successors, probabilities = _slips(after)
    goal = (tiles.ravel() == "G")[kept]
    sources = np.repeat(np.arange(len(after)), np.diff(indptr[:: len(MOVES)]))
    kinds = {"cell": "integer", "action": "categorical", "reward": "continuous"}
    return MDP(
        "FrozenLake",
        Schema([["cell"], ["action"]], ["action"], "reward", kinds),
        tuple((cell,) for cell in np.flatnonzero(kept).tolist()),
        tuple((move,) for move in MOVES),
        indptr,
        successors,
        probabilities,
        (goal[successors] & ~goal[sources]).astype(np.float64),
        (start / start.sum())[kept],
        over[kept],
        episodes=100_000,
        horizon=8,
    )


def random_map(size: int, rng: np.random.Generator | int, hole: float = 0.1) -> tuple[str, ...]:
    """Return a square map with S top left and G bottom right that can be reached.

    >>> random_map(3, 1, hole=0.3)
    ('SFH', 'FFF', 'FFG')
    """
    rng = np.random.default_rng(rng)
    if size < 2 or not 0 <= hole < 1:
        raise DataError(f"expected size 2 or more and hole in [0, 1), found {size} and {hole}")
    moves = _neighbours((size, size))
    start = np.arange(size * size) == 0
    while True:
        holes = rng.random(size * size) < hole
        holes[[0, -1]] = False
        if _reached(moves, holes, start)[-1]:
            break
    tiles = np.where(holes, "H", "F")
    tiles[0], tiles[-1] = "S", "G"
    return tuple("".join(row) for row in tiles.reshape(size, size).tolist())


def _tiles(lake: Sequence[str]) -> NDArray[np.str_]:  # [rows, columns]
    if len({len(row) for row in lake}) != 1 or set("".join(lake)) - set("SFHG"):
        raise DataError(f"expected rows of S, F, H and G of one length, found {list(lake)}")
    tiles = np.array([list(row) for row in lake])
    if (tiles == "S").sum() != 1 or not (tiles == "G").any():
        raise DataError("expected one S and a G in the map")
    return tiles


def _neighbours(shape: tuple[int, ...]) -> Ints:  # [cells, 4]
    """Return where each move leads from each cell, on a lake without holes."""
    row, column = (axis.ravel()[:, None] for axis in np.indices(shape))
    down, right = np.array(list(MOVES.values())).T
    below, beside = np.clip(row + down, 0, shape[0] - 1), np.clip(column + right, 0, shape[1] - 1)
    return np.asarray(below * shape[1] + beside)


def _reached(moves: Ints, over: Bools, start: Bools) -> Bools:
    """Return the cells that can be reached, by widening the start step by step."""
    seen, edge = start.copy(), start
    while edge.any():
        ahead = np.zeros_like(seen)
        ahead[moves[edge & ~over]] = True
        edge = ahead & ~seen
        seen |= edge
    return seen


def _slips(
    after: Ints,  # [S, 4], where each move leads
) -> tuple[Ints, Ints, Array]:
    """Return each row's distinct successors and their probabilities, in thirds."""
    S, A = after.shape
    slipped = np.stack([np.roll(after, turn, axis=1) for turn in (1, 0, -1)], axis=2)
    keys = np.arange(S * A)[:, None] * S + slipped.reshape(S * A, 3)
    distinct, times = np.unique(keys, return_counts=True)
    indptr = np.searchsorted(distinct, np.arange(S * A + 1) * S)
    return indptr, distinct % S, times / 3
