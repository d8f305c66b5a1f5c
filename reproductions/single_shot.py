"""Four single-shot decision problems as exact simulators, small enough to be enumerated."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rspmn.schema import Schema
from rspmn.values import Value

#: What has been observed and decided so far.
Past = Mapping[str, Value]
#: The probability of each value, given the past. (Any: a mapping's keys are invariant.)
Chances = Callable[[Past], Mapping[Any, float]]


@dataclass(frozen=True)
class DecisionProblem:
    """A problem given by its chances, its choices and its utility.

    `chances[x](past)` gives the probability of each value of x, `choices[d](past)` the values that
    can be chosen, `utility(past)` the utility at the end.
    """

    schema: Schema
    chances: Mapping[str, Chances]
    choices: Mapping[str, Callable[[Past], Sequence[Value]]]
    utility: Callable[[Past], float]

    def optimum(self, past: Past | None = None) -> float:
        """Return the best expected utility, given what is known: the sum-max-sum rule."""
        past = past or {}
        name = next((n for n in self.schema.variables[:-1] if n not in past), None)
        if name is None:
            return self.utility(past)
        if name in self.choices:
            return max(self.optimum({**past, name: v}) for v in self.choices[name](past))
        chances = self.chances[name](past)
        return sum(p * self.optimum({**past, name: v}) for v, p in chances.items() if p > 0)

    def sample(self, rows: int, rng: np.random.Generator | int) -> dict[str, list[Value]]:
        """Draw rows, with uniformly random choices; equal rows are adjacent."""
        rng = np.random.default_rng(rng)
        drawn: list[tuple[Past, int]] = [({}, rows)]
        for name in self.schema.variables[:-1]:
            longer: list[tuple[Past, int]] = []
            for past, count in drawn:
                chances = self._chances(name, past)
                counts = rng.multinomial(count, list(chances.values()))
                longer += [
                    ({**past, name: value}, int(n))
                    for value, n in zip(chances, counts, strict=True)
                    if n
                ]
            drawn = longer
        table: dict[str, list[Value]] = {name: [] for name in self.schema.variables}
        for past, count in drawn:
            for name, value in {**past, self.schema.utility: self.utility(past)}.items():
                table[name] += [value] * count
        return table

    def _chances(self, name: str, past: Past) -> Mapping[Value, float]:
        if name in self.choices:
            offered = self.choices[name](past)
            return dict.fromkeys(offered, 1 / len(offered))
        return self.chances[name](past)


def oil_wildcatter() -> DecisionProblem:
    """Test the ground or not, see the result, drill or not.

    A hole is dry, wet or soaking with .5, .3, .2; the seismic test shows no, an open or a closed
    structure and costs 10; drilling costs 70 and earns 0, 120 or 270.
    """
    prior = {"dry": 0.5, "wet": 0.3, "soaking": 0.2}
    shows = {
        "dry": {"none": 0.6, "open": 0.3, "closed": 0.1},
        "wet": {"none": 0.3, "open": 0.4, "closed": 0.3},
        "soaking": {"none": 0.1, "open": 0.4, "closed": 0.5},
    }
    earns = {"dry": 0, "wet": 120, "soaking": 270}

    def result(past: Past) -> dict[Any, float]:
        if past["test"] == "no":
            return {"not tested": 1.0}
        return {r: sum(prior[h] * shows[h][r] for h in prior) for r in shows["dry"]}

    def hole(past: Past) -> dict[Any, float]:
        if past["test"] == "no":
            return dict(prior)
        joint = {h: prior[h] * shows[h][str(past["result"])] for h in prior}
        return {h: p / sum(joint.values()) for h, p in joint.items()}

    def utility(past: Past) -> float:
        cost = 10 if past["test"] == "yes" else 0
        return (earns[str(past["hole"])] - 70 if past["drill"] == "yes" else 0) - cost

    yes_no = lambda _: ("yes", "no")  # noqa: E731
    return DecisionProblem(
        Schema([["test"], ["result"], ["drill"], ["hole"]], ["test", "drill"], "profit"),
        {"result": result, "hole": hole},
        {"test": yes_no, "drill": yes_no},
        utility,
    )


def diagnosis() -> DecisionProblem:
    """See a patient, test or not, see the result, treat with one of three drugs or none."""
    ill = {"young": 0.2, "old": 0.5}

    def result(past: Past) -> dict[Any, float]:
        if not past["test"]:
            return {"unknown": 1.0}
        p = ill[str(past["age"])]
        positive = 0.9 * p + 0.15 * (1 - p)
        return {"positive": positive, "negative": 1 - positive}

    def disease(past: Past) -> dict[Any, float]:
        p = ill[str(past["age"])]
        if past["result"] == "positive":
            p = 0.9 * p / (0.9 * p + 0.15 * (1 - p))
        elif past["result"] == "negative":
            p = 0.1 * p / (0.1 * p + 0.85 * (1 - p))
        return {True: p, False: 1 - p}

    def utility(past: Past) -> float:
        cured = {"none": 0, "mild": 40, "strong": 80, "wrong": -10}
        harm = {"none": 0, "mild": 5, "strong": 25 if past["age"] == "old" else 10, "wrong": 30}
        health = 100 - (90 if past["disease"] else 0)
        gain = cured[str(past["treat"])] if past["disease"] else 0
        return float(health + gain - harm[str(past["treat"])] - (3 if past["test"] else 0))

    return DecisionProblem(
        Schema(
            [["age"], ["test"], ["result"], ["treat"], ["disease"]], ["test", "treat"], "health"
        ),
        {"age": lambda _: {"young": 0.6, "old": 0.4}, "result": result, "disease": disease},
        {"test": lambda _: (True, False), "treat": lambda _: ("none", "mild", "strong", "wrong")},
        utility,
    )


def used_car() -> DecisionProblem:
    """Inspect the engine or not, then the gearbox or not, then buy or not.

    Each part is bad with .3 and .2, once and for all; inspections are right with .9 and cost 9
    and 13. A good car is worth 100 more than its price; a bad part costs 120 or 90.
    """
    bad = {"engine": 0.3, "gearbox": 0.2}

    def report(part: str, inspected: str) -> Chances:
        def chances(past: Past) -> dict[Any, float]:
            if past[inspected] == "no":
                return {"unseen": 1.0}
            p = 0.9 * bad[part] + 0.1 * (1 - bad[part])
            return {"looks bad": p, "looks good": 1 - p}

        return chances

    def truth(part: str, told: str) -> Chances:
        def chances(past: Past) -> dict[Any, float]:
            p = bad[part]
            if past[told] == "looks bad":
                p = 0.9 * p / (0.9 * p + 0.1 * (1 - p))
            elif past[told] == "looks good":
                p = 0.1 * p / (0.1 * p + 0.9 * (1 - p))
            return {"bad": p, "good": 1 - p}

        return chances

    def utility(past: Past) -> float:
        paid = 9 * (past["look at engine"] == "yes") + 13 * (past["look at gearbox"] == "yes")
        if past["buy"] == "no":
            return float(-paid)
        return float(100 - 120 * (past["engine"] == "bad") - 90 * (past["gearbox"] == "bad") - paid)

    yes_no = lambda _: ("yes", "no")  # noqa: E731
    return DecisionProblem(
        Schema(
            [
                ["look at engine"], ["engine report"], ["look at gearbox"], ["gearbox report"],
                ["buy"], ["engine", "gearbox"],
            ],
            ["look at engine", "look at gearbox", "buy"],
            "gain",
        ),
        {
            "engine report": report("engine", "look at engine"),
            "gearbox report": report("gearbox", "look at gearbox"),
            "engine": truth("engine", "engine report"),
            "gearbox": truth("gearbox", "gearbox report"),
        },
        {"look at engine": yes_no, "look at gearbox": yes_no, "buy": yes_no},
        utility,
    )  # fmt: skip


def export_timing() -> DecisionProblem:
    """Ship now, wait or sell at home, as the exchange rate and the season have it; in millions."""
    demand = {"low": 0.35, "high": 0.65}

    def rate_later(past: Past) -> dict[Any, float]:
        rises = {"weak": 0.7, "even": 0.5, "strong": 0.2}[str(past["rate"])]
        return {"up": rises, "down": 1 - rises}

    def utility(past: Past) -> float:
        base = {"weak": -1_200_000, "even": 400_000, "strong": 2_500_000}[str(past["rate"])]
        move = 1_900_000 if past["rate later"] == "up" else -2_300_000
        if past["ship"] == "home":
            return 150_000.0 if past["season"] == "dry" else -50_000.0
        earned = base + (move if past["ship"] == "wait" else 0)
        return earned * (1.0 if past["demand"] == "high" else 0.4) - 300_000.0

    return DecisionProblem(
        Schema([["season", "rate"], ["ship"], ["rate later", "demand"]], ["ship"], "profit"),
        {
            "season": lambda _: {"dry": 0.5, "rain": 0.5},
            "rate": lambda _: {"weak": 0.3, "even": 0.4, "strong": 0.3},
            "rate later": rate_later,
            "demand": lambda _: dict(demand),
        },
        {"ship": lambda _: ("now", "wait", "home")},
        utility,
    )


SINGLE_SHOT = {
    "oil wildcatter": oil_wildcatter,
    "diagnosis": diagnosis,
    "used car": used_car,
    "export timing": export_timing,
}
