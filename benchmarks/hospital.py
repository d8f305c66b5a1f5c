"""A hospital: stays with laboratory values that are partly missing, and two treatments a day.

What drives a stay is not observed: an infection, which antibiotics cure, and a severity, which the
infection raises. Vasopressors help the severely ill and harm the others. Each day a patient may die
or be discharged, which earns 100. Age matters a little, sex not at all.

`python benchmarks/hospital.py --seeds 3` learns from 2,500 stays, with more laboratory values, more
of them missing or as whole numbers, and prints what the policy earns beside its honest value, and
the memory of the process.
"""

import argparse
import resource
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import process_time
from typing import NamedTuple

import numpy as np

import rspmn
from rspmn.schema import Schema
from rspmn.types import Array, Bools, Ints

LABS = "lactate", "map", "crp", "creatinine", "leukocytes", "bilirubin", "platelets", "urea"
#: The share of each laboratory value that is missing.
MISSING = np.array([0.03, 0.35, 0.2, 0.1, 0.15, 0.3, 0.2, 0.1])
#: The laboratory values that may be logged as whole numbers, as age may be.
WHOLE = np.array([False, True, True, False, False, False, True, True])
DECISIONS = "antibiotics", "vasopressor"
#: After so many days a stay is cut.
DAYS = 30


class Records(NamedTuple):
    """What a hospital keeps of its patients."""

    labs: int = 4  # how many laboratory values
    gaps: float = 1.0  # times the usual share of values that are missing
    whole: bool = False  # whether some of them, and ages, are whole numbers

    @property
    def schema(self) -> Schema:
        """The meaning of the columns."""
        order = [[*LABS[: self.labs], "age", "sex"], *([name] for name in DECISIONS)]
        return Schema(order, [*DECISIONS], "outcome")


#: The records of all benchmarks that do not say otherwise.
USUAL = Records()
SCHEMA = USUAL.schema

#: A policy: the values of all patients, with and without gaps, to both treatments [patients, 2].
Treat = Callable[["Ward"], Ints]


class Ward:
    """Patients, side by side."""

    def __init__(self, patients: int, rng: np.random.Generator, records: Records = USUAL) -> None:
        self.rng, self.records = rng, records
        self.age = rng.normal(62, 14, patients).clip(18, 98)
        self.age = self.age.round() if records.whole else self.age
        self.sex = rng.integers(2, size=patients)
        self.severity = rng.normal(1 + 0.01 * (self.age - 62), 0.6)
        self.infection = rng.normal(1.2, 0.5, patients).clip(0)
        self.staying = np.ones(patients, dtype=bool)
        self.look()

    def look(self) -> None:
        """Measure the laboratory values of a day."""
        rng, size = self.rng, len(self.age)
        measured = [
            1.2 + 1.1 * np.maximum(self.severity, 0) + rng.normal(0, 0.3, size),
            88 - 9 * self.severity + rng.normal(0, 4, size),
            20 + 60 * self.infection + rng.normal(0, 12, size),
            1 + 0.25 * self.severity + 0.004 * (self.age - 62) + rng.normal(0, 0.15, size),
        ]  # fmt: skip
        if self.records.labs > len(measured):
            measured += [
                8 + 4 * self.infection + rng.normal(0, 1.5, size),
                0.6 + 0.2 * np.maximum(self.severity, 0) ** 2 + rng.normal(0, 0.2, size),
                250 - 40 * self.severity + rng.normal(0, 30, size),
                30 + 12 * self.severity + 0.2 * (self.age - 62) + rng.normal(0, 6, size),
            ]
        self.measured = np.stack(measured[: self.records.labs], axis=1)
        if self.records.whole:
            self.measured = np.where(
                WHOLE[: self.records.labs], self.measured.round(), self.measured
            )
        gone = rng.random(self.measured.shape) < self.records.gaps * MISSING[: self.records.labs]
        self.logged = np.where(gone, np.nan, self.measured)  # [patients, labs]

    def states(self) -> dict[str, list[object]]:
        """Return what is known of all patients, by variable."""
        columns: dict[str, list[object]] = {
            lab: [None if np.isnan(x) else x for x in self.logged[:, k].tolist()]
            for k, lab in enumerate(LABS[: self.records.labs])
        }
        sex = ["FM"[k] for k in self.sex.tolist()]
        return {**columns, "age": self.age.tolist(), "sex": list(sex)}

    def day(self, treated: Ints) -> tuple[Array, Bools]:
        """Treat all patients [patients, 2]; return what each earns, and which stays end."""
        rng, size = self.rng, len(self.age)
        antibiotics, vasopressor = treated.T
        change = 0.06 - 0.35 * antibiotics + rng.normal(0, 0.08, size)
        self.infection = (self.infection + change).clip(0)
        helped = np.where(self.severity > 1.3, -0.45, 0.25) * vasopressor
        self.severity += 0.3 * (self.infection - 0.7) + helped + rng.normal(0, 0.2, size)
        dies = rng.random(size) < 1 / (1 + np.exp(7.2 - 2.2 * self.severity))
        goes = ~dies & (rng.random(size) < 0.6 / (1 + np.exp(2.5 * self.severity - 1)))
        over = (dies | goes) & self.staying
        earned = np.where(goes & self.staying, 100.0, 0.0)
        self.staying &= ~over
        self.look()
        return earned, over


def practice(ward: Ward) -> Ints:
    """Treat as the hospital does: by thresholds, often not."""
    rng, size = ward.rng, len(ward.age)
    antibiotics = rng.random(size) < np.where(ward.measured[:, 2] > 110, 0.75, 0.15)
    vasopressor = rng.random(size) < np.where(ward.measured[:, 1] < 72, 0.6, 0.08)
    return np.stack([antibiotics, vasopressor], axis=1).astype(np.int64)


def always_antibiotics(ward: Ward) -> Ints:
    """Give antibiotics every day, and nothing else."""
    return np.tile([1, 0], (len(ward.age), 1))


def mean_outcome(treat: Treat, patients: int, seed: int, records: Records = USUAL) -> float:
    """Return what a policy earns per stay."""
    ward, earned = Ward(patients, np.random.default_rng(seed), records), 0.0
    for _ in range(DAYS):
        earned += float(ward.day(treat(ward))[0].sum())
        if not ward.staying.any():
            break
    return earned / patients


def log_of(
    treat: Treat, patients: int, seed: int, records: Records = USUAL
) -> dict[str, list[object]]:
    """Return the log of a policy, a row for each day of each stay."""
    ward = Ward(patients, np.random.default_rng(seed), records)
    names = ["stay", "day", *LABS[: records.labs], "age", "sex", *DECISIONS, "outcome", "over"]
    log: dict[str, list[object]] = {name: [] for name in names}
    for day in range(DAYS):
        here = np.flatnonzero(ward.staying).tolist()
        columns, treated = ward.states(), treat(ward)
        columns |= {name: treated[:, k].tolist() for k, name in enumerate(DECISIONS)}
        earned, over = ward.day(treated)
        columns |= {"outcome": earned.tolist(), "over": over.tolist()}
        columns |= {"stay": list(range(patients)), "day": [day] * patients}
        for name in names:
            log[name] += [columns[name][k] for k in here]
        if not ward.staying.any():
            break
    return log


#: The records that are compared.
KINDS = {
    "usual": USUAL, "whole": Records(whole=True), "8 labs": Records(labs=8),
    "1.7 x missing": Records(gaps=1.7), "8 labs, 1.5 x missing": Records(labs=8, gaps=1.5),
}  # fmt: skip


def measure(kind: str, seed: int) -> str:
    """Learn from a log of some kind; return what the policy earns, and what it took."""
    records = KINDS[kind]
    log = log_of(practice, 2_500, seed, records)
    began = process_time()
    windows = rspmn.windows(log, records.schema, episode="stay", time="day", terminated="over")
    policy = rspmn.learn_rspmn(windows)[0].policy(DAYS)
    honest, taken = policy.honest_value(), process_time() - began
    days = iter(range(DAYS))

    def treat(ward: Ward) -> Ints:
        chosen = policy.act_many(ward.states(), next(days))
        return np.stack([chosen[name] for name in DECISIONS], axis=1).astype(np.int64)

    earned = mean_outcome(treat, 3_000, seed + 1_000, records)
    before = mean_outcome(practice, 10_000, seed + 500, records)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    held = honest.low <= earned <= honest.high
    return (
        f"{kind}, seed {seed}: practice {before:.1f}, earns {earned:.1f}, honest "
        f"{honest.point:.1f} ({honest.low:.1f} to {honest.high:.1f}) held {held}, "
        f"{taken:.0f} s, {peak:.0f} MB"
    )


def main() -> None:
    """Print a line for each log, of a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", default=[*KINDS], choices=KINDS)
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        for kind in asked.kinds:
            for seed in range(asked.seeds):
                print(pool.submit(measure, kind, seed).result(), flush=True)


if __name__ == "__main__":
    main()
