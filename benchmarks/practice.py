"""What is recommended from logs of practice, beside practice itself and what others learn.

`python benchmarks/practice.py finite` makes logs of loggers who act optimally but for a share of
random actions, in the testbed's domains, random MDPs, at a cliff and in a ring of machines; `python
benchmarks/practice.py numbers` makes logs of decent controllers who err, in worlds of numbers. Each
prints the values of policies, 0 for random actions and 1 for optimal ones: means over logs, the
worst differences, and how often the interval of the honest value holds the truth. `--seeds 20
--keep kept.jsonl` keeps what was measured, and goes on from there; `-o docs` writes the table's
part of docs/practice_figures.md.
"""

import argparse
import json
from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from tqdm import tqdm
from worlds import World, earned, log_of
from worlds.care import GLUCOSE, HIV, TREATED
from worlds.cart_pole import CART_POLE
from worlds.finite import CASES, steps_of
from worlds.rivals import fitted_q, spibb
from worlds.shop import INVENTORY, QUEUE, RETENTION, WEEKS

from rspmn import RSPMN, Policy, windows
from rspmn.evaluate import Tabular, true_value
from rspmn.learn import learn_rspmn

#: What is recommended may be so much below practice.
AIM = 0.02
#: SPIBB changes actions of so many logged steps.
ENOUGH = 10
#: The worlds of numbers, with the shares of random decisions of their two loggers.
NUMBERS: dict[str, tuple[World, tuple[float, ...]]] = {
    world.name: (world, shares)
    for world, shares in (
        (INVENTORY, (0.1, 0.3)), (QUEUE, (0.1, 0.3)), (RETENTION, (0.1, 0.3)),
        (WEEKS, (0.1, 0.3)), (TREATED, (0.1, 0.3)), (GLUCOSE, (0.02, 0.1)),
        (CART_POLE, (0.1, 0.5)), (HIV, (0.1, 0.3)),
    )
}  # fmt: skip
SHARES = 0.0, 0.02, 0.1, 0.5, 1.0
#: The episodes that value a policy, where not 4,000.
VALUED = {"CartPole": 500, "HIV": 200}
#: A case: a world, and its logger's share of random actions.
Case = tuple[str, float]
ABOUT = {
    "finite": """## Finite worlds

Loggers act optimally, but for a share of random actions; at the careful cliff these are never over
the edge. Logs have 1,000 episodes or as many as the case says, 300 at cliffs, 100 of the ring.
Values are exact: of the logger, of a table of counts, of SPIBB (actions of 10 logged steps), of the
plan of maximum expected utility (`safe=False`), and recommended by default.
""",
    "numbers": """## Worlds of numbers

Loggers are hand-made controllers, but for a share of random decisions. Values are of 4,000 episodes
(CartPole 500, HIV 200), and 1 is the best known policy; *error* is the largest of
their standard errors. Fitted Q is on extremely randomised trees.
""",
}
COLUMNS = """
Means over logs. *Least*: of what is recommended less practice, with a star below -0.02; *kept*: the
share of logs with no less than that; *held*: the share in which the 90 % interval of the honest
value holds its value; *other*: in which the plan of maximum expected utility is not recommended;
*seconds* of CPU for learning, both plans and the honest value.

"""
METHODS = {
    "finite": ("practice", "table", "SPIBB", "plain", "recommended"),
    "numbers": ("practice", "fitted Q", "plain", "recommended"),
}


def finite_log(name: str, share: float, seed: int) -> dict[str, Any]:
    """Learn from a log of a finite world."""
    case = CASES[name]
    world = case.world(seed)
    horizon, actions = steps_of(world), len(world.actions)
    logger = case.logger(world, share)
    log = world.generate(case.episodes, horizon, seed, "final", logger)
    least = world.evaluate(np.full((len(world.states), actions), 1 / actions), horizon)
    scale, table = world.optimum(horizon) - least, Tabular.fit(log)
    began = process_time()
    model, _ = learn_rspmn(log)
    plain, policy, answers = _recommended(model, horizon)
    seconds = process_time() - began
    true = true_value(world, policy, horizon)
    values = {
        "practice": world.evaluate(logger, horizon),
        "table": world.evaluate(table.policy_for(world, horizon), horizon),
        "SPIBB": world.evaluate(spibb(table, world, horizon, ENOUGH), horizon),
        "plain": true_value(world, plain, horizon), "recommended": true,
    }  # fmt: skip
    near = 1e-6 * scale  # of rounding
    held = answers["low"] - near <= true <= answers["high"] + near
    return _found(values, answers, least, scale, held=held, seconds=seconds)


def numbers_log(name: str, share: float, seed: int) -> dict[str, Any]:
    """Learn from a log of a world of numbers."""
    world, _ = NUMBERS[name]
    log = log_of(world, world.episodes, seed, share)
    began = process_time()
    model, _ = learn_rspmn(windows(log, world.schema, terminated="over"))
    plain, policy, answers = _recommended(model, world.horizon)
    seconds = process_time() - began
    values = {"practice": _known(name, share), "recommended": _earned(world, policy)}
    same = answers["text"] == "plain"
    values["plain"] = values["recommended"] if same else _earned(world, plain)
    values["fitted Q"] = earned(world, fitted_q(world, log), _episodes(world))
    least = _known(name, 1.0)[0]
    near = 1e-6 * (world.best - least)  # of rounding
    held = answers["low"] - near <= values["recommended"][0] <= answers["high"] + near
    found = _found({k: v[0] for k, v in values.items()}, answers, least, world.best - least,
                   held=held, seconds=seconds)  # fmt: skip
    error = max(values[k][1] for k in ("practice", "recommended"))
    return found | {"error": error / (world.best - least)}


def _recommended(model: RSPMN, horizon: int) -> tuple[Policy, Policy, dict[str, Any]]:
    """Return the plan of maximum expected utility, what is recommended, and its answers."""
    plain, policy = model.policy(horizon, safe=False), model.policy(horizon)
    honest = policy.honest_value()
    assert policy.choice is not None
    answers: dict[str, Any] = {k: getattr(honest, k) for k in ("low", "point", "high", "promise")}
    answers |= {"text": "plain" if policy.choice.is_plain else policy.choice.text}
    return plain, policy, answers | {"caveats": honest.caveats}


def _found(
    values: dict[str, float], answers: dict[str, Any], least: float, scale: float, **more: Any
) -> dict[str, Any]:
    scaled = {k: (value - least) / scale for k, value in values.items()}
    ends = {k: (answers[k] - least) / scale for k in ("low", "point", "high", "promise")}
    return {**scaled, **answers, **ends, **more}


def _episodes(world: World) -> int:
    return VALUED.get(world.name, 4_000)


def _earned(world: World, policy: Policy) -> tuple[float, float]:
    return earned(world, world.follow(policy), _episodes(world))


@cache
def _known(name: str, share: float) -> tuple[float, float]:
    """Return what a logger earns, and its standard error."""
    world, _ = NUMBERS[name]
    return earned(world, world.logger(share), 5 * _episodes(world))


def cases_of(kind: str, names: Sequence[str] | None, shares: Sequence[float] | None) -> list[Case]:
    """Return the cases of a table; of all worlds, and of their shares, by default."""
    if kind == "finite":
        return [*product(names or CASES, shares or SHARES)]
    return [(name, share) for name in names or NUMBERS for share in shares or NUMBERS[name][1]]


def measured(kind: str, cases: list[Case], seeds: int, keep: Path | None) -> list[dict[str, Any]]:
    """Return what was found of each log: first one of each case, then another."""
    lines = keep.read_text(encoding="utf-8").splitlines() if keep and keep.exists() else []
    found = [json.loads(line) for line in lines]
    known = {(row["world"], row["share"], row["seed"]) for row in found}
    measure = finite_log if kind == "finite" else numbers_log
    for seed, (name, share) in tqdm([*product(range(seeds), cases)]):
        if (name, share, seed) in known:
            continue
        row = {"world": name, "share": share, "seed": seed, **measure(name, share, seed)}
        found.append(row)
        if keep:
            with keep.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    return [row for row in found if (row["world"], row["share"]) in cases and row["seed"] < seeds]


def table_of(kind: str, cases: list[Case], rows: list[dict[str, Any]]) -> str:
    """Return a table with a row for each case."""
    numbers = kind == "numbers"
    names = ["world", "random", "logs", *METHODS[kind], "least", "kept", "held", "other",
             "seconds", *(["error"] * numbers)]  # fmt: skip
    lines = [_line(names), _line(["---"] * len(names))]
    for name, share in cases:
        mine = [row for row in rows if (row["world"], row["share"]) == (name, share)]
        if not mine:
            continue
        above = np.array([row["recommended"] - row["practice"] for row in mine])
        cells = [name, f"{share:.0%}", str(len(mine))]
        cells += [f"{np.mean([row[k] for row in mine]):.3f}" for k in METHODS[kind]]
        cells += [f"{above.min():+.3f}{'' if above.min() >= -AIM else ' *'}",
                  f"{np.mean(above >= -AIM):.2f}", f"{np.mean([row['held'] for row in mine]):.2f}",
                  f"{np.mean([row['text'] != 'plain' for row in mine]):.2f}",
                  f"{np.mean([row['seconds'] for row in mine]):.1f}"]  # fmt: skip
        cells += [f"{max(row['error'] for row in mine):.3f}"] if numbers else []
        lines.append(_line(cells))
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def write(path: Path, kind: str, text: str) -> None:
    """Write a part of the page; the others stay as they are."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    parts = {"finite": "", "numbers": ""}
    for each, about in ABOUT.items():
        _, head, rest = old.partition(about.partition("\n")[0])
        parts[each] = (head + rest.partition("\n## ")[0]).strip() + "\n" if head else ""
    parts[kind] = text
    path.write_text("# Logs of practice\n\n" + "\n".join(filter(None, parts.values())), "utf-8")


def main() -> None:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", nargs="?", choices=[*METHODS], default="finite")
    parser.add_argument("--worlds", nargs="+", choices=[*CASES, *NUMBERS])
    parser.add_argument("--shares", nargs="+", type=float)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="a file of what is measured, to go on from")
    parser.add_argument("-o", "--output", type=Path, help="a folder for practice_figures.md")
    asked = parser.parse_args()
    cases = cases_of(asked.kind, asked.worlds, asked.shares)
    rows = measured(asked.kind, cases, asked.seeds, asked.keep)
    found = table_of(asked.kind, cases, rows)
    if asked.output:
        command = f"python benchmarks/practice.py {asked.kind} --seeds {asked.seeds}"
        text = f"{ABOUT[asked.kind]}{COLUMNS}Made by `{command} -o {asked.output}`.\n\n{found}"
        write(asked.output / "practice_figures.md", asked.kind, text)
    else:
        print(found)


if __name__ == "__main__":
    main()
