"""CartPole as Gymnasium has it, side by side, for 200 steps."""

import numpy as np

from rspmn.types import Array, Bools
from worlds import Made, States, World

NAMES = "place", "speed", "angle", "turn"
GRAVITY, CART, POLE, HALF, FORCE, STEP = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02


def _upright(n: int, rng: np.random.Generator) -> States:
    return dict(zip(NAMES, rng.uniform(-0.05, 0.05, (4, n)), strict=True))


def _where_it_falls(state: States, _t: int, _rng: np.random.Generator) -> Made:
    """Push to where the pole falls; the place is not cared for."""
    return {"push": (state["angle"] + 0.1 * state["turn"] > 0).astype(np.int64)}


def _pushed(state: States, made: Made, _rng: np.random.Generator) -> tuple[Array, States, Bools]:
    place, speed, angle, turn = (state[name] for name in NAMES)
    force = np.where(made["push"] == 1, FORCE, -FORCE)
    sine, cosine, mass = np.sin(angle), np.cos(angle), CART + POLE
    usual = (force + POLE * HALF * turn**2 * sine) / mass
    turns = (GRAVITY * sine - cosine * usual) / (HALF * (4 / 3 - POLE * cosine**2 / mass))
    speeds = usual - POLE * HALF * turns * cosine / mass
    after = place + STEP * speed, speed + STEP * speeds, angle + STEP * turn, turn + STEP * turns
    over = (np.abs(after[0]) > 2.4) | (np.abs(after[2]) > 12 * np.pi / 180)
    return np.ones(len(force)), dict(zip(NAMES, after, strict=True)), over


CART_POLE = World(
    "CartPole", 300, 200, NAMES, {"push": ("left", "right")}, _upright, _where_it_falls, _pushed,
    200.0,
)  # fmt: skip
