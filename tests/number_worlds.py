"""Small logs of numbers for tests."""

from typing import Any

import numpy as np

import rspmn
from rspmn import Schema
from rspmn.data.windows import Windows


def windows_of(rng: np.random.Generator, steps: int, numbers: int) -> Windows:
    """Return a log of random walks: two actions, a reward that depends on the first number."""
    x = np.clip(3 + np.cumsum(rng.normal(0, 0.3, (steps, numbers)), axis=0), -0.9, 7.9)
    log: dict[str, list[Any]] = {"episode": [0] * steps, "time": list(range(steps))}
    log |= {f"x{j}": x[:, j].tolist() for j in range(numbers)}
    log["a"] = rng.integers(0, 2, steps).tolist()
    log["u"] = x[:, 0].tolist()
    names = [f"x{j}" for j in range(numbers)]
    return rspmn.windows(log, Schema([names, ["a"]], ["a"], "u"), ending="cut")


def corridor(
    episodes: int, seed: int, noise: int = 0, missing: float = 0.0, machine: bool = False,
    right_from: float = 0.0,
) -> tuple[dict[str, list[Any]], Schema]:  # fmt: skip
    """Return a log of walks on [0, 1] by steps of 0.1, with 1 earned at the right, 0.4 at the left.

    `noise` columns have nothing to do with it. `attribute` is constant in an episode. With a
    `machine`, of kind "forward" or "reverse", actions are reversed on the latter. Right is never
    taken below `right_from`.
    """
    rng = np.random.default_rng(seed)
    log: dict[str, list[Any]] = {}
    rows: list[dict[str, Any]] = []
    for episode in range(episodes):
        x, t = float(rng.uniform(0.05, 0.95)), 0
        attribute, kind = float(rng.normal()), ("forward", "reverse")[int(rng.integers(2))]
        while True:
            action = str(rng.choice(["left", "right"])) if x > right_from else "left"
            right = (action == "right") != (machine and kind == "reverse")
            after = x + (0.1 if right else -0.1) + float(rng.normal(0, 0.005))
            over = not 0 < after < 1
            row: dict[str, Any] = {
                "episode": episode,
                "time": t,
                "x": x,
                "attribute": attribute,
                "a": action,
            }
            row |= {f"z{k}": float(rng.normal()) for k in range(noise)}
            if machine:
                row["machine"] = kind
            if rng.random() < missing:
                row["x"] = None
            row |= {"u": (1.0 if after >= 1 else 0.4) if over else 0.0, "over": over}
            rows.append(row)
            x, t = after, t + 1
            if over or t == 60:
                break
    for name in rows[0]:
        log[name] = [row[name] for row in rows]
    state = ["x", "attribute", *(f"z{k}" for k in range(noise)), *(["machine"] * machine)]
    return log, Schema([state, ["a"]], ["a"], "u")


def compass(
    episodes: int, seed: int, speed: bool = False, digits: int = 12
) -> tuple[dict[str, list[Any]], Schema]:
    """Return a log of turns left and right by 0.3 to north, 0.2 to both sides; 1 is earned there.

    A heading is logged as its cosine, "east", and sine, "north". With `speed` a turn is as large
    as the speed, a number from 0.1 to 0.5 that is drawn anew in each step.
    """
    rng = np.random.default_rng(seed)
    names = "episode", "time", "east", "north", "speed", "a", "u", "over"
    rows: list[tuple[Any, ...]] = []
    for episode in range(episodes):
        angle = float(rng.uniform(-np.pi, np.pi))
        for t in range(60):
            action = str(rng.choice(["left", "right"]))
            turn = float(rng.uniform(0.1, 0.5)) if speed else 0.3
            east, north = round(float(np.cos(angle)), digits), round(float(np.sin(angle)), digits)
            angle += (turn if action == "left" else -turn) + float(rng.normal(0, 0.01))
            over = bool(np.cos(angle - np.pi / 2) > np.cos(0.2))
            rows.append((episode, t, east, north, turn, action, float(over), over))
            if over:
                break
    log = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    state = ["east", "north", *(["speed"] * speed)]
    if not speed:
        del log["speed"]
    return log, Schema([state, ["a"]], ["a"], "u")
