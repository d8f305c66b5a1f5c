"""Decision problems of a single shot, as exact simulators: their optimum is enumerated."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rspmn.schema import Schema
from rspmn.values import Value

#: What has been seen and decided so far.
Past = Mapping[str, Value]
#: The probability of each value, given the past. (Any: a mapping's keys are invariant.)
Chances = Callable[[Past], Mapping[Any, float]]


@dataclass(frozen=True)
class DecisionProblem:
    """A problem given by its chances, its choices and its utility.

    `chances[x](past)` gives the probability of each value of x, `choices[d](past)` the values that
    can be chosen, `utility(past)` what is earned in the end.
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
        """Draw rows, every choice as likely as any other; those that are equal stand together."""
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
