"""Care: a hospital, doses of insulin, and drugs against HIV.

In the hospital, what drives a stay is not observed: an infection, which antibiotics cure, and a
severity, which the infection raises. Vasopressors help the severely ill and harm the others. Each
day a patient may die or be discharged, which earns 100. Laboratory values are partly missing. Age
matters a little, sex not at all.
"""

from dataclasses import replace

import numpy as np

from rspmn.types import Array, Bools
from worlds import Made, States, World

# ---- a hospital ------------------------------------------------------------------------

LABS = "lactate", "map", "crp", "creatinine", "leukocytes", "bilirubin", "platelets", "urea"
#: The share of each laboratory value that is missing.
MISSING = np.array([0.03, 0.35, 0.2, 0.1, 0.15, 0.3, 0.2, 0.1])
#: The laboratory values that may be logged as whole numbers, as age may be.
WHOLE = np.array([False, True, True, False, False, False, True, True])


def hospital(name: str, labs: int = 4, gaps: float = 1.0, whole: bool = False) -> World:
    """Return a hospital with so many laboratory values.

    Parameters
    ----------
    name
        Its name.
    labs
        How many laboratory values there are.
    gaps
        How many times the usual share of values is missing.
    whole
        Whether some of them, and ages, are whole numbers.
    """

    def looked(state: States, rng: np.random.Generator) -> States:
        """Measure the laboratory values of a day."""
        age, severity, infection = state["age"], state["severity"], state["infection"]
        raised, size = np.maximum(severity, 0), len(age)
        measured = np.stack([
            1.2 + 1.1 * raised + rng.normal(0, 0.3, size),
            88 - 9 * severity + rng.normal(0, 4, size),
            20 + 60 * infection + rng.normal(0, 12, size),
            1 + 0.25 * severity + 0.004 * (age - 62) + rng.normal(0, 0.15, size),
            8 + 4 * infection + rng.normal(0, 1.5, size),
            0.6 + 0.2 * raised**2 + rng.normal(0, 0.2, size),
            250 - 40 * severity + rng.normal(0, 30, size),
            30 + 12 * severity + 0.2 * (age - 62) + rng.normal(0, 6, size),
        ])  # fmt: skip
        measured = np.where(WHOLE[:, None] & whole, measured.round(), measured)
        gone = rng.random(measured.shape) < gaps * MISSING[:, None]
        seen = dict(zip(LABS, np.where(gone, np.nan, measured), strict=True))
        return {**state, **seen, "seen_map": measured[1], "seen_crp": measured[2]}

    def admitted(patients: int, rng: np.random.Generator) -> States:
        age = rng.normal(62, 14, patients).clip(18, 98)
        age = age.round() if whole else age
        sex = np.array(["F", "M"])[rng.integers(2, size=patients)]
        severity = rng.normal(1 + 0.01 * (age - 62), 0.6)
        infection = rng.normal(1.2, 0.5, patients).clip(0)
        return looked({"age": age, "sex": sex, "severity": severity, "infection": infection}, rng)

    def treated(state: States, made: Made, rng: np.random.Generator) -> tuple[Array, States, Bools]:
        size, severity = len(state["age"]), state["severity"]
        change = 0.06 - 0.35 * made["antibiotics"] + rng.normal(0, 0.08, size)
        infection = (state["infection"] + change).clip(0)
        helped = np.where(severity > 1.3, -0.45, 0.25) * made["vasopressor"]
        severity = severity + 0.3 * (infection - 0.7) + helped + rng.normal(0, 0.2, size)
        dies = rng.random(size) < 1 / (1 + np.exp(7.2 - 2.2 * severity))
        goes = ~dies & (rng.random(size) < 0.6 / (1 + np.exp(2.5 * severity - 1)))
        after = looked({**state, "severity": severity, "infection": infection}, rng)
        return np.where(goes, 100.0, 0.0), after, dies | goes

    observed = (*LABS[:labs], "age", "sex")
    decisions = {"antibiotics": (0, 1), "vasopressor": (0, 1)}
    return World(name, 2_500, 30, observed, decisions, admitted, _by_thresholds, treated, 97.5)


def _by_thresholds(state: States, _t: int, rng: np.random.Generator) -> Made:
    """Treat by thresholds, often not."""
    return _treated_if(state["seen_crp"] > 110, state["seen_map"] < 72, rng, 0.75, 0.15, 0.6, 0.08)


def _more_often(state: States, _t: int, rng: np.random.Generator) -> Made:
    """Treat by lower thresholds, and more often."""
    return _treated_if(state["seen_crp"] > 80, state["seen_map"] < 75, rng, 0.9, 0.5, 0.8, 0.05)


def _treated_if(infected: Bools, severe: Bools, rng: np.random.Generator, *often: float) -> Made:
    draws = rng.random((2, len(severe)))
    antibiotics = draws[0] < np.where(infected, often[0], often[1])
    vasopressor = draws[1] < np.where(severe, often[2], often[3])
    return {"antibiotics": antibiotics.astype(int), "vasopressor": vasopressor.astype(int)}


HOSPITAL = hospital("hospital")
#: The same where more patients are treated.
TREATED = replace(HOSPITAL, usual=_more_often)

# ---- glucose, which meals raise and doses of insulin lower ----------------------------

DOSES = 0, 1, 2, 4


def _by_scale(state: States, _t: int, rng: np.random.Generator) -> Made:
    """Give more the higher glucose is, measured and less what insulin will take from it."""
    measured = state["glucose"] + rng.normal(0, 15, len(state["glucose"])) - 8 * state["active"]
    return {"dose": np.searchsorted([140.0, 180.0, 240.0], measured)}


def _metabolised(
    state: States, made: Made, rng: np.random.Generator
) -> tuple[Array, States, Bools]:
    glucose, active, meal = state["glucose"], state["active"], state["meal"]
    active = active * 0.6 + np.array(DOSES, dtype=float)[made["dose"]]
    change = 0.9 * meal - 14 * active + 0.1 * (130 - glucose) + rng.normal(0, 8, len(glucose))
    glucose = np.clip(glucose + change, 30, 400)
    gain = 1 - np.abs(glucose - 120) / 60 - 4.0 * (glucose < 70)
    over = (glucose < 45) | (glucose > 390)
    eaten = np.where(rng.random(len(glucose)) < 0.35, rng.gamma(4.0, 12.0, len(glucose)), 0.0)
    return gain - 25 * over, {"glucose": glucose, "active": active, "meal": eaten}, over


GLUCOSE = World(
    "glucose", 200, 40, ("glucose", "active", "meal"), {"dose": DOSES},
    lambda n, rng: {"glucose": rng.normal(150, 30, n), "active": np.zeros(n), "meal": np.zeros(n)},
    _by_scale, _metabolised, 26.0,
)  # fmt: skip


# ---- HIV (Adams et al. 2004), with the values of Ernst et al. (2006) --------------------

CELLS = "healthy_1", "healthy_2", "infected_1", "infected_2", "virus", "immune"
SICK = np.array([163573.0, 5.0, 11945.0, 46.0, 63919.0, 24.0])
#: A step is of five days, integrated in so many parts.
PARTS, DAYS = 250, 5.0


def _rates(x: Array, first: Array, second: Array) -> tuple[Array, Array]:  # [6, n] each
    """Return what cells and virus gain a day under the effect of two drugs, and lose a unit."""
    one, two, ill_one, ill_two, virus, immune = x
    infects_one, infects_two = (1 - first) * 8e-7 * virus, (1 - 0.34 * first) * 1e-4 * virus
    ill, all_ = ill_one + ill_two, np.ones_like(one)
    gains = (
        1e4 * all_, 31.98 * all_, infects_one * one, infects_two * two, (1 - second) * 70 * ill,
        1 + 0.3 * ill / (ill + 100) * immune,
    )  # fmt: skip
    losses = (
        0.01 + infects_one, 0.01 + infects_two, 0.7 + 1e-5 * immune, 0.7 + 1e-5 * immune,
        13 + (1 - first) * 8e-7 * one + (1 - 0.34 * first) * 1e-4 * two,
        0.1 + 0.25 * ill / (ill + 500),
    )  # fmt: skip
    return np.stack(gains), np.stack(losses)


def _infected(n: int, rng: np.random.Generator) -> States:
    start = np.log10(SICK)[:, None] + rng.normal(0, 0.15, (6, n))
    return dict(zip(CELLS, start, strict=True))


def _while_high(state: States, _t: int, _rng: np.random.Generator) -> Made:
    """Give both drugs while there is much virus and the immune response is weak."""
    high = (state["virus"] > 2.5) & (state["immune"] < 4.5)
    return {"rti": high.astype(int), "pi": high.astype(int)}


def _days(state: States, made: Made, _rng: np.random.Generator) -> tuple[Array, States, Bools]:
    x = 10.0 ** np.stack([state[name] for name in CELLS])
    first, second = (c * made[n].astype(np.float64) for c, n in ((0.7, "rti"), (0.3, "pi")))
    for _ in range(PARTS):  # exact where rates do not change
        gains, losses = _rates(x, first, second)
        x = gains / losses + (x - gains / losses) * np.exp(-DAYS / PARTS * losses)
    gain = 1e3 * x[5] - 0.1 * x[4] - 2e4 * first**2 - 2e3 * second**2
    after = dict(zip(CELLS, np.log10(x), strict=True))
    return gain, after, np.zeros(len(gain), dtype=bool)


HIV = World(
    "HIV", 60, 50, CELLS, {"rti": (0, 1), "pi": (0, 1)}, _infected, _while_high, _days, 2.2e7,
)  # fmt: skip
