"""Trust on logs of numbers: intervals of actions, current practice, off-policy estimates.

`python benchmarks/evaluate_numbers.py` learns from logs of CartPole (300 random episodes), a
hospital (2,500 stays) and walks in a corridor, and compares what models say of current practice, of
the recommended policy and of single actions with what these earn. `--only corridor`, `--seeds 1`;
`-o docs` writes docs/evaluate_numbers_figures.md.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from soft_boxes import TASKS, logged, played, table_of
from worlds import earned, log_of
from worlds.care import HOSPITAL

from rspmn import RSPMN, Episodes, Policy, Schema, learn_rspmn
from rspmn.evaluate import Comparison, Estimate, compare, off_policies
from rspmn.types import Array, Ints
from rspmn.values import short

#: The corridor: a step, the spread of steps, what the ends earn, the steps and their discount.
STEP, SPREAD, LEFT, RIGHT, WALK, DISCOUNT = 0.1, 0.005, 0.4, 1.0, 20, 0.95
#: Where actions are asked about, and walks that value one.
PLACES, WALKS = np.array([0.12, 0.25, 0.4, 0.55, 0.7, 0.85]), 400
ACTIONS = "left", "right"
#: The logs of the corridor, in episodes.
LOGS = 30, 100, 400, 2_000
ABOUT = """# Trust on logs of numbers

Made by `{command}`.

"""


@dataclass(frozen=True, eq=False)
class Case:
    """A log of numbers, and what practice and policies earn."""

    log: Episodes
    horizon: int
    discount: float
    practice: float
    earns: Callable[[Policy], float]


# ---- worlds -----------------------------------------------------------------------------------


def hospital(seed: int) -> Case:
    """Return the stays of a hospital."""

    def earns(policy: Policy) -> float:
        return earned(HOSPITAL, HOSPITAL.follow(policy), 3_000, seed + 1_000)[0]

    log = log_of(HOSPITAL, HOSPITAL.episodes, seed)
    episodes = Episodes.from_long(log, HOSPITAL.schema, terminated="over")
    practice, _ = earned(HOSPITAL, HOSPITAL.usual, 10_000, seed + 500)
    return Case(episodes, HOSPITAL.horizon, 1.0, practice, earns)


def cart_pole(seed: int) -> Case:
    """Return 300 random games of CartPole, of which 200 steps count."""
    task, horizon = TASKS[0], 200
    table, schema = table_of(logged(task, seed))
    names = schema.information_sets[0]

    def earns(policy: Policy) -> float:
        def act(x: Array, t: int) -> Any:
            return policy.act_many(dict(zip(names, x.T.astype(float), strict=True)), t)

        return played(task, act, games=200, most=horizon)

    rng = np.random.default_rng(seed)
    by_chance = played(task, lambda x, _: rng.integers(2, size=len(x)), 2_000, horizon)
    return Case(Episodes.from_long(table, schema, terminated="ended"), horizon, 1.0, by_chance,
                earns)  # fmt: skip


def corridor(seed: int, episodes: int = 300) -> Case:
    """Return walks on [0, 1] in random directions, until an end."""
    rng = np.random.default_rng(seed)
    rows = []
    for episode, x in enumerate(rng.uniform(0.05, 0.95, episodes).tolist()):
        for t in range(60):
            action = int(rng.integers(2))
            after = float(_moved(np.array([x]), np.array([action]), rng)[0])
            over = not 0 < after < 1
            earned = (RIGHT if after >= 1 else LEFT) if over else 0.0
            rows.append((episode, t, x, ACTIONS[action], earned, over))
            x = after
            if over:
                break
    names = "episode", "time", "x", "a", "u", "over"
    table = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    log = Episodes.from_long(table, Schema([["x"], ["a"]], ["a"], "u"), terminated="over")
    starts = np.random.default_rng(seed + 10_000).uniform(0.05, 0.95, 20_000)

    def earns(policy: Policy) -> float:
        return float(walked(starts[:4_000], None, policy, seed).mean())

    return Case(log, WALK, DISCOUNT, float(walked(starts, None, None, seed).mean()), earns)


def walked(x: Array, first: Ints | None, policy: Policy | None, seed: int) -> Array:  # [walks]
    """Return what walks earn: an action first, if one is given, then a policy, or by chance."""
    rng, total, on = np.random.default_rng(seed), np.zeros(len(x)), np.ones(len(x), dtype=bool)
    for t in range(WALK):
        if t == 0 and first is not None:
            right = first
        elif policy is not None:
            right = (policy.act_many({"x": x}, t) == "right").astype(np.int64)
        else:
            right = rng.integers(2, size=len(x))
        x = _moved(x, right, rng)
        over = on & ~((x > 0) & (x < 1))
        total += np.where(over, DISCOUNT**t * np.where(x >= 1, RIGHT, LEFT), 0.0)
        on &= ~over
        x = np.where(on, x, 0.5)
    return total


def _moved(x: Array, right: Ints, rng: np.random.Generator) -> Array:
    return np.asarray(x + STEP * (2 * right - 1) + rng.normal(0, SPREAD, len(x)))


CASES: dict[str, Callable[[int], Case]] = {
    "corridor": corridor, "CartPole": cart_pole, "hospital": hospital
}  # fmt: skip


# ---- what is measured -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Found:
    """What one log gives."""

    case: Case
    both: Comparison
    policy: float  # what the recommended policy earns
    estimates: Sequence[Sequence[Estimate]]  # of practice, and of the recommended policy
    seconds: float


def measured(case: Case) -> Found:
    """Learn from a log, and evaluate practice and recommendation."""
    model = learned(case.log)
    policy = model.policy(case.horizon, case.discount)
    started = process_time()
    both = compare(model, case.log, case.horizon, case.discount)
    answers = off_policies(
        model, case.log, ["practice", policy], case.horizon, case.discount, draws=100
    )
    seconds = process_time() - started
    estimates = [answer.estimates for answer in answers]
    return Found(case, both, case.earns(policy), estimates, seconds)


def learned(log: Episodes) -> RSPMN:
    """Return the model of a log; it must be one of soft boxes."""
    model, _ = learn_rspmn(log)
    assert model.soft_counts is not None
    return model


def comparison_lines(name: str, found: Sequence[Found]) -> Iterable[str]:
    """Return a row for each log."""
    for seed, each in enumerate(found):
        now, policy = each.both.practice, each.both.policy
        cells = [
            name, str(seed), short(each.case.practice), *_cells(now.value, now.low, now.high),
            short(each.policy), *_cells(policy.point, policy.low, policy.high),
            f"{each.both.agreement:.0%}", f"{each.seconds:.0f}",
        ]  # fmt: skip
        yield _row(cells)


def _cells(value: float, low: float, high: float) -> list[str]:
    return [short(value), f"{short(low)} to {short(high)}"]


def estimator_lines(name: str, found: Sequence[Found]) -> Iterable[str]:
    """Return a row for each estimator: mean errors, coverage, effective episodes."""
    for place, target in enumerate(("practice", "recommended")):
        truths = np.array([each.policy if place else each.case.practice for each in found])
        for k, first in enumerate(found[0].estimates[place]):
            mine = [each.estimates[place][k] for each in found]
            value, low, high, effective = (
                np.array([getattr(e, part) for e in mine])
                for part in ("value", "low", "high", "effective")
            )
            held = int(((low <= truths) & (truths <= high)).sum())
            cells = [
                name, target, first.method, short(float((value - truths).mean())),
                short(float(np.abs(value - truths).mean())), f"{held} of {len(found)}",
                "" if np.isnan(effective).any() else f"{effective.mean():.0f}",
            ]  # fmt: skip
            yield _row(cells)


def action_line(episodes: int, seeds: int) -> str:
    """Return how often intervals of actions in the corridor hold what these are worth."""
    held, widths, errors, sure, right = [], [], [], [], []
    for seed in range(seeds):
        policy = learned(corridor(seed, episodes).log).policy(WALK, DISCOUNT)
        x, first = np.repeat(PLACES, 2 * WALKS), np.tile(np.repeat([0, 1], WALKS), len(PLACES))
        truth = walked(x, first, policy, seed).reshape(len(PLACES), 2, WALKS).mean(axis=2)
        for place, worth in zip(PLACES.tolist(), truth, strict=True):
            found = policy.how_sure({"x": place})
            for each in found.actions:
                value = worth[ACTIONS.index(str(each.action.value))]
                held.append(each.low <= value <= each.high)
                widths.append(each.high - each.low)
                errors.append(abs(each.action.utility - value))
            assert found.recommended is not None
            taken = ACTIONS.index(str(found.recommended.action.value))
            sure.append(not found.too_close)
            right.append(worth[taken] >= worth[1 - taken])
    certain = np.array(sure)
    shares = [float(np.mean(held)), float(np.mean(right)), float(certain.mean())]
    when_sure = f"{np.array(right)[certain].mean():.0%}" if certain.any() else ""
    cells = [f"{episodes:,}", str(seeds), str(len(held)), f"{shares[0]:.0%}",
             short(float(np.mean(widths))), short(float(np.mean(errors))),
             *(f"{share:.0%}" for share in shares[1:]), when_sure]  # fmt: skip
    return _row(cells)


# ---- the page ---------------------------------------------------------------------------------


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _head(*names: str) -> list[str]:
    return [_row(names), _row(["---"] * len(names))]


def page(names: Sequence[str], seeds: int, most: int) -> Iterable[str]:
    """Return the lines of the page."""
    found = {name: [measured(CASES[name](seed)) for seed in range(seeds)] for name in names}
    yield "Current practice and the recommended policy (honest value), each with a 90 % interval"
    yield "and what it earns in the world. Seconds are of CPU, for both tables but not learning."
    yield ""
    yield from _head("case", "seed", "practice earns", "value", "interval", "policy earns",
                     "honest value", "interval", "agreement", "seconds")  # fmt: skip
    for name, each in found.items():
        yield from comparison_lines(name, each)
    yield ""
    yield "Estimates of both: mean error, mean absolute error, and how often the 90 % interval"
    yield "holds the truth."
    yield ""
    yield from _head("case", "policy", "estimator", "error", "absolute", "held", "effective")
    for name, each in found.items():
        yield from estimator_lines(name, each)
    if "corridor" in names:
        yield ""
        yield f"Actions in the corridor: 90 % intervals of `how_sure` at {len(PLACES)} places, two"
        yield "actions each; how often the recommended one is the better, how often it is not too"
        yield "close to call, and how often it is the better then."
        yield ""
        yield from _head("episodes", "logs", "actions", "held", "width", "absolute error",
                         "right", "sure", "right when sure")  # fmt: skip
        for episodes in LOGS:
            if episodes <= most:
                yield action_line(episodes, 20 if seeds > 1 else 1)


def main() -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--most", type=int, default=LOGS[-1], help="episodes of a corridor's log")
    parser.add_argument("-o", "--output", help="a folder")
    asked = parser.parse_args()
    lines = page(asked.only, asked.seeds, asked.most)
    if not asked.output:
        for line in lines:
            print(line, flush=True)
        return
    command = f"python {' '.join(sys.argv)}"
    text = ABOUT.format(command=command) + "\n".join(lines) + "\n"
    (Path(asked.output) / "evaluate_numbers_figures.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
