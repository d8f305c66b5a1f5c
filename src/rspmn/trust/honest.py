"""What the recommended policy is worth, without the optimism of choosing and valuing on one log.

MEU is the highest of many noisy values, so it promises too much where data are few. The posterior
has no such preference: the recommended policy is valued in draws of all weights, with what was
never seen. That it was chosen because it looks best leaves some optimism, e: by so much, on
average, the best policy of a draw is worth more in its draw than in the mean. Half of it is taken
from the point, all of it from the lower end of the interval.
"""

import math
from dataclasses import dataclass

import numpy as np

from rspmn.errors import EvidenceError
from rspmn.infer.bellman import check_discount, check_steps
from rspmn.infer.compiled.planned import Planned
from rspmn.infer.criterion import MEU
from rspmn.model import RSPMN
from rspmn.trust.draws import Worlds
from rspmn.trust.posterior import Posterior
from rspmn.trust.rules import Best, Fixed
from rspmn.types import Array

#: The tails of the draws that the interval leaves out. The 90 % interval is that of 95 % of the
#: draws: they know nothing of errors of structure.
TAIL = 0.025
#: Of so many draws the optimism is computed.
FOR_OPTIMISM = 100
#: At most this many floats are held per chunk of draws.
CHUNK = 10_000_000


@dataclass(frozen=True)
class HonestValue:
    """What a policy is worth from the start, with a 90 % interval."""

    point: float
    low: float
    high: float
    promise: float  # the maximum expected utility
    optimism: float  # the mean promise of policies beyond their worth, when both are of one log
    deviation: float  # the standard deviation over draws

    def __float__(self) -> float:
        return self.point

    @property
    def kept(self) -> bool:
        """Whether the promise is within noise, a standard deviation, of the point."""
        rounding = 1e-6 * max(1.0, abs(self.promise))
        return abs(self.promise - self.point) <= self.deviation + rounding


def honest_value(
    model: RSPMN,
    horizon: int,
    discount: float = 1.0,
    draws: int = 300,
    rng: np.random.Generator | int = 0,
) -> HonestValue:
    """Return what the recommended policy is worth; see `RSPMN.honest_value`."""
    check_discount(discount)
    steps = check_steps(horizon, least=1)
    if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 2:
        raise EvidenceError(f"draws: expected 2 or more, found {draws!r}")
    rng, promise = np.random.default_rng(rng), model.meu(horizon=steps, discount=discount)
    posterior = model.posterior
    if not math.isfinite(promise):
        return HonestValue(math.nan, math.nan, math.nan, float(promise), math.nan, math.nan)
    plan = Planned(model, steps, discount, MEU)
    rules = [Fixed(plan.at(after).choices.chosen) for after in range(steps)]
    mean, start = posterior.mean_world(), np.array(model.starts)
    shared: list[Array] = []
    anywhere: list[Array] = []
    optimism: list[Array] = []
    for count in _chunks(posterior, draws):
        found = posterior.draw(count, rng)
        worlds = posterior.worlds(found)
        shared.append(_from_start(worlds.values(rules, discount, count), found.starts))
        if found.outside.any():
            outside = posterior.worlds(posterior.outside(found, rng))
            values = outside.values(rules, discount, count)
            anywhere.append(_from_start(values, found.starts))
        if sum(len(part) for part in optimism) < min(draws, FOR_OPTIMISM):
            best, worth = _best_and_its_worth(worlds, mean, steps, discount, count)
            optimism.append(_from_start(best, found.starts) - worth @ start)
    bounds = posterior.bounds(steps, discount)
    return _summary(shared, anywhere, optimism, float(promise), bounds)


def _summary(
    shared: list[Array],
    anywhere: list[Array],
    optimism: list[Array],
    promise: float,
    bounds: tuple[float, float],
) -> HonestValue:
    values, worst = (np.clip(np.concatenate(x), *bounds) for x in (shared, anywhere or shared))
    extra = max(0.0, float(np.concatenate(optimism).mean()))
    low = min(float(np.quantile(x, TAIL)) for x in (values, worst))
    high = float(np.quantile(values, 1 - TAIL))
    point = max(float(values.mean()) - extra / 2, bounds[0])
    low, high = min(max(low - extra, bounds[0]), point), max(high, point)
    return HonestValue(point, low, high, promise, extra, float(values.std()))


def _chunks(posterior: Posterior, draws: int) -> list[int]:
    """Divide the draws into chunks that fit in memory."""
    evidence = posterior.evidence
    floats = 3 * len(evidence.cells.to) + 12 * evidence.size
    most = max(1, min(FOR_OPTIMISM, CHUNK // floats))
    return [min(most, draws - first) for first in range(0, draws, most)]


def _best_and_its_worth(
    worlds: Worlds, mean: Worlds, steps: int, discount: float, count: int
) -> tuple[Array, Array]:
    """Return the best values in each draw, and what its best choices are worth in the mean."""
    best = worth = np.zeros((count, worlds.bellman.interfaces))
    for after in range(steps):
        rule = Best()
        best = worlds.update(best, discount, after == 0, rule)
        worth = mean.update(worth, discount, after == 0, Fixed(rule.taken))
    return best, worth


def _from_start(values: Array, starts: Array) -> Array:  # [draws]
    return np.asarray((values * starts).sum(axis=1))
