"""Current practice: the behaviour policy of the log as a circuit, and its value.

If max nodes are replaced by sums, weighted by the frequencies of their branches in the log, the
template becomes a circuit of the behaviour policy.
"""

import numpy as np

from rspmn.circuit import Categorical, Max, Network, NetworkBuilder
from rspmn.circuit.network import with_children
from rspmn.errors import EvidenceError
from rspmn.evaluate.importance import Estimate
from rspmn.evaluate.model_value import ModelValue, draws_of, recentred
from rspmn.infer.bellman import check_discount, check_steps
from rspmn.infer.branches import Context
from rspmn.model import RSPMN
from rspmn.trust.honest import LEVEL, check_level, tails_of
from rspmn.trust.practice import often_taken
from rspmn.types import Array


def practice_network(model: RSPMN) -> Network:
    """Return the template with sums instead of max nodes; decisions are variables like others.

    Branches that the log never took are left out, unless it took none of a node.

    >>> from rspmn.envs.grid_universe import grid_universe
    >>> from rspmn.learn import learn_rspmn
    >>> model, _ = learn_rspmn(grid_universe().generate(episodes=500, horizon=8, rng=0))
    >>> any(isinstance(node, Max) for node in practice_network(model).nodes)
    False
    """
    builder, template = NetworkBuilder(), model.template
    steps = Context(template).steps
    placed: list[int] = []
    for node in template.nodes:
        children = tuple(placed[child] for child in node.children)
        if not isinstance(node, Max):
            placed.append(builder.add(with_children(node, children)))
            continue
        taken = _shares([steps[child] for child in node.children])
        kept = [k for k, share in enumerate(taken) if share > 0]
        made = [builder.leaf(node.decision, Categorical.certain(node.values[k])) for k in kept]
        parts = [builder.product([leaf, children[k]]) for leaf, k in zip(made, kept, strict=True)]
        placed.append(builder.sum(parts, [taken[k] for k in kept]))
    return builder.build(*(placed[root] for root in template.roots))


def _shares(steps: list[float]) -> list[float]:
    """Return shares of logged steps; equal ones where there are none."""
    total = sum(steps)
    if not np.isfinite(total) or total == 0:  # END, or a model written by hand
        return [1 / len(steps)] * len(steps)
    return [each / total for each in steps]


def practice_value(model: RSPMN, horizon: int, discount: float = 1.0) -> ModelValue:
    """Return the value of current practice in a model, by the counts that the model keeps."""
    check_discount(discount)
    steps = [often_taken(level.branches.steps, level.starts) for level in model.bellman.levels]
    return ModelValue(model, [steps], check_steps(horizon, least=1), discount)


def practice(
    model: RSPMN,
    horizon: int,
    discount: float = 1.0,
    *,
    draws: int = 300,
    rng: np.random.Generator | int = 0,
    level: float = LEVEL,
) -> Estimate:
    """Return the value of current practice from the start, with a 90 % interval.

    The frequencies of decisions are drawn together with all other weights.

    Parameters
    ----------
    model
        A learned model, with counts.
    horizon
        The number of steps.
    discount
        The discount factor per step.
    draws
        The number of draws from the posterior.
    rng
        A random generator, or a seed.
    level
        The confidence level of the interval.

    Examples
    --------
    >>> from rspmn.envs.grid_universe import grid_universe
    >>> from rspmn.learn import learn_rspmn
    >>> world = grid_universe()
    >>> model, _ = learn_rspmn(world.generate(episodes=1000, horizon=8, rng=0))
    >>> found = practice(model, horizon=8)
    >>> found.low < world.evaluate(None, 8) < found.high
    True
    """
    found, rng = practice_value(model, horizon, discount), np.random.default_rng(rng)
    drawn = draws_of(model, [found.drawn_rules(rng)], discount, check_draws(draws), rng)[0]
    bounds = model.source.bounds(horizon, discount)
    drawn = recentred(drawn, found.value)
    return estimate_of("practice", found.value, drawn, bounds, level=check_level(level))


def estimate_of(
    method: str,
    value: float,
    drawn: Array,
    bounds: tuple[float, float],
    below: float = 0.0,
    above: float = 0.0,
    level: float = LEVEL,
) -> Estimate:
    """Return a value with the interval of draws, made wider, and so that it has the value.

    None of them is outside of `bounds`, what can be earned at all.
    """
    # Of few draws, the share beyond these quantiles is right on average.
    low, high = np.quantile(drawn, tails_of(level), method="weibull").tolist()
    ends = value, min(low + below, value), max(high + above, value)
    return Estimate(method, *np.clip(ends, *bounds).tolist())


def check_draws(draws: int) -> int:
    """Return a number of draws that gives an interval."""
    if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 2:
        raise EvidenceError(f"draws: expected 2 or more, found {draws!r}")
    return int(draws)
