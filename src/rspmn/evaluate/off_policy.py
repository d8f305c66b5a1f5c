"""Off-policy evaluation: the value of a policy, estimated from a log of another policy.

The estimators are the model, importance sampling, and combinations of both. `docs/evaluation.md`
explains when to use which.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rspmn.data.episodes import Episodes
from rspmn.evaluate.behaviour import given_behaviour
from rspmn.evaluate.importance import Estimate, final_weights, marginalised, per_decision
from rspmn.evaluate.logged import LoggedSteps, episodes_of, logged_steps
from rspmn.evaluate.model_value import Rules, draws_of, recentred
from rspmn.evaluate.practice import check_draws, estimate_of
from rspmn.evaluate.target_on_log import TargetOnLog
from rspmn.evaluate.target_policies import Planned, Practice, as_target
from rspmn.infer.bellman import check_discount, check_steps
from rspmn.model import RSPMN
from rspmn.spmn import SPMN
from rspmn.trust.honest import LEVEL, check_level
from rspmn.types import Array, Bools
from rspmn.values import show

#: Estimates that rest on fewer effective episodes than this are flagged; those of so many are
#: believed where the model says something else.
FEW, MANY = 30, 100
#: So many standard errors are no chance.
SURE = 4.0


@dataclass(frozen=True)
class OffPolicy:
    """Estimates of the value of a policy, with notes on their reliability."""

    horizon: int
    discount: float
    episodes: int
    estimates: tuple[Estimate, ...]  # by the model first
    #: The share of the policy's decisions, in the logged states, that the log has taken in them.
    coverage: float
    #: Whether the probabilities of the logged decisions were given, or estimated from the log.
    behaviour_given: bool
    notes: tuple[str, ...]  # what to know before any of it is believed
    level: float = LEVEL  # of the intervals

    def __getitem__(self, method: str) -> Estimate:
        for estimate in self.estimates:
            if estimate.method == method:
                return estimate
        raise KeyError(f"{method!r}: expected one of {[e.method for e in self.estimates]}")


def off_policy(
    model: RSPMN | SPMN,
    log: Episodes | object,
    policy: object,
    horizon: int | None = None,
    discount: float = 1.0,
    *,
    behaviour: Array | None = None,
    draws: int = 300,
    rng: np.random.Generator | int = 0,
    level: float = LEVEL,
) -> OffPolicy:
    """Return estimates of the value of a policy over a horizon from the start.

    Parameters
    ----------
    model
        A model learned from the log, or from another log of the same process.
    log
        Logged episodes; they may have different lengths. Of a model of single decisions, a table
        of these.
    policy
        Anything that `rspmn.evaluate.as_target` accepts.
    horizon
        The number of steps; by default that of the longest episode. If an episode was truncated
        earlier, the model's value is used for the rest.
    discount
        The discount factor per step.
    behaviour
        The probability of each logged decision under the behaviour policy, [steps]. By default,
        probabilities are estimated from the log.
    draws
        The number of draws from the posterior.
    rng
        A random generator, or a seed.
    level
        The confidence level of the intervals.

    Examples
    --------
    >>> from rspmn.envs.grid_universe import grid_universe
    >>> from rspmn.learn import learn_rspmn
    >>> world = grid_universe()
    >>> log = world.generate(episodes=1000, horizon=8, rng=0)
    >>> found = off_policy(learn_rspmn(log)[0], log, "uniform")
    >>> found["model"].low < world.evaluate(None, 8) < found["model"].high
    True
    """
    return off_policies(
        model, log, [policy], horizon, discount, behaviour=behaviour, draws=draws, rng=rng,
        level=level,
    )[0]  # fmt: skip


def off_policies(
    model: RSPMN | SPMN,
    log: Episodes | object,
    policies: Sequence[object],
    horizon: int | None = None,
    discount: float = 1.0,
    *,
    behaviour: Array | None = None,
    draws: int = 300,
    rng: np.random.Generator | int = 0,
    level: float = LEVEL,
) -> list[OffPolicy]:
    """Return estimates of the values of several policies, in the same draws; see `off_policy`."""
    check_discount(discount)
    check_level(level)
    model, log = episodes_of(model, log)
    steps = logged_steps(model, log)
    horizon = steps.longest if horizon is None else check_steps(horizon, least=1)
    draws, rng = check_draws(draws), np.random.default_rng(rng)
    given = None if behaviour is None else given_behaviour(steps, behaviour)
    targets = [as_target(policy, lambda: model.policy(horizon, discount)) for policy in policies]
    found = [TargetOnLog(model, steps, each, horizon, discount, given) for each in targets]
    by_model = _by_model(model, found, discount, draws, rng, level)
    return [_answer(each, estimate, level) for each, estimate in zip(found, by_model, strict=True)]


def _by_model(
    model: RSPMN,
    found: Sequence[TargetOnLog],
    discount: float,
    draws: int,
    rng: np.random.Generator,
    level: float,
) -> list[Estimate]:
    """Return values in the model. Where they are extrapolated, the interval has both."""
    values = [each.value.value for each in found]
    if not model.is_counted:
        return [Estimate("model", value, np.nan, np.nan) for value in values]
    rules: list[Rules] = [each.drawn_rules(rng) for each in found]
    practised = [k for k, each in enumerate(found) if isinstance(each.target, Practice)]
    rules += [found[k].observed.drawn_rules(rng) for k in practised]
    drawn = draws_of(model, rules, discount, draws, rng)
    for k, more in zip(practised, drawn[len(found) :], strict=True):
        drawn[k] = recentred(more, float(drawn[k].mean()))
    extra = [value - each.observed.value for value, each in zip(values, found, strict=True)]
    bounds = model.source.bounds(found[0].horizon, discount)
    return [
        estimate_of("model", value, numbers, bounds, min(more, 0.0), max(more, 0.0), level)
        for value, numbers, more in zip(values, drawn, extra, strict=False)
    ]


def _answer(found: TargetOnLog, by_model: Estimate, level: float) -> OffPolicy:
    """Return all estimates for one target."""
    by_state, lost = marginalised(found.moves, found.horizon, found.discount, level)
    estimates = (
        by_model,
        per_decision(found.weighable, normalised=False, model=True, level=level),
        per_decision(found.weighable, normalised=True, model=True, level=level),
        by_state,
        per_decision(found.weighable, normalised=True, model=False, level=level),
        per_decision(found.weighable, normalised=False, model=False, level=level),
    )
    notes = (*_about_model(found), *_about_log(found), *_about_policy(found))
    return OffPolicy(
        found.horizon, found.discount, found.steps.episodes, estimates, found.coverage,
        found.given is not None,
        (*notes, *_about_weights(estimates, lost), *_about_agreement(found, estimates)), level,
    )  # fmt: skip


# ---- what to know before an estimate is believed ------------------------------------------


def _about_model(found: TargetOnLog) -> list[str]:
    notes: list[str] = []
    situations = found.steps.situations
    if found.model.is_counted:
        notes += found.model.source.caveats
    else:
        notes.append("the model has no counts: its value has no interval")
    if isinstance(found.target, Planned) and found.target.policy.model is found.model:
        notes.append(
            "the policy was optimised in this model, where its value is biased; its honest value "
            "(RSPMN.honest_value, rspmn meu) is not"
        )
    lost = float(situations.steps @ situations.places.nowhere / situations.steps.sum())
    if lost:
        notes.append(f"{_share(lost)} of the logged steps are in states that are not in the model")
    return notes


def _about_log(found: TargetOnLog) -> list[str]:
    notes, steps = [], found.steps
    if steps.episodes == 1:
        notes.append("one episode: importance sampling has no interval")
    rare = len(steps.reward) - int(np.unique(steps.reward, return_counts=True)[1].max())
    if 0 < rare < FEW and steps.episodes >= FEW:
        notes.append(
            f"all but {rare} of the logged rewards are equal: the value depends on rare events, "
            "and intervals may be too narrow"
        )
    if found.cut.any():
        notes.append(
            f"{_share(found.cut.mean())} of the episodes were truncated before step "
            f"{found.horizon}: the model's values are used for the rest, without their error"
        )
        if found.horizon > steps.longest:
            notes.append(
                f"no episode has more than {steps.longest} of {found.horizon} steps: the rest "
                "depends on the model alone"
            )
    return notes


def _about_policy(found: TargetOnLog) -> list[str]:
    notes, steps = [], found.steps
    total = steps.situations.steps
    silent = float(total[found.silent].sum() / total.sum())
    if silent:
        notes.append(
            f"the policy is not defined in {_share(silent)} of the logged steps, such as "
            f"{_example(steps, found.silent)}: current practice is used there"
        )
    strange = np.asarray((found.of_time(0).sum(axis=1) < 1 - 1e-6) & (total > 0))
    if strange.any():
        notes.append(
            "the policy takes actions that are neither in the log nor in the model, such as in "
            f"{_example(steps, strange)}"
        )
    if found.coverage < 1 - 1e-9:
        notes.append(
            f"{_share(1 - found.coverage)} of the policy's decisions were never logged in these "
            "states: the model extrapolates their values if it can; importance sampling leaves "
            "them out"
        )
    return notes


def _about_weights(estimates: Sequence[Estimate], lost: float) -> list[str]:
    notes = []
    undefined = [e.method for e in estimates if np.isnan(e.value)]
    if undefined:
        notes.append(f"{', '.join(undefined)}: no logged episode follows the policy")
    few = [e.method for e in estimates if e.effective < FEW and e.method not in undefined]
    if few:
        notes.append(f"{', '.join(few)}: fewer than {FEW} effective episodes; do not rely on them")
    if lost > 1e-9:
        notes.append(
            f"marginalised: {_share(lost)} of the policy's episodes reach states in which its "
            "action was never logged"
        )
    return notes


def _about_agreement(found: TargetOnLog, estimates: Sequence[Estimate]) -> list[str]:
    """Return whether the model, the log and the probabilities can all be right."""
    notes, weights = [], final_weights(found.weighable)
    error = float(weights.std()) / np.sqrt(len(weights))
    if weights.mean() > 1 + SURE * error + 1e-9:
        notes.append(
            f"the mean weight of episodes is {weights.mean():.3g}, expected 1: the probabilities "
            "of the logged decisions, and importance sampling, are unreliable"
        )
    model = estimates[0]
    weighted = next(e for e in estimates if e.method == "weighted importance sampling")
    low, high = (model.value if np.isnan(end) else end for end in (model.low, model.high))
    apart = low > weighted.high or high < weighted.low
    if weighted.effective >= MANY and apart:
        notes.append(
            f"the model and weighted importance sampling, with {weighted.effective:.0f} effective "
            "episodes, disagree: the state may be incomplete"
        )
    return notes


def _share(share: float) -> str:
    return f"{100 * share:.3g} %"


def _example(steps: LoggedSteps, which: Bools) -> str:
    """Return the most frequent of some states as text."""
    row = int(np.argmax(np.where(which, steps.situations.steps, -1)))
    state = steps.situations.known[row]
    return ", ".join(f"{n}={show(v)}" for n, v in state.items() if v is not None) or "(no state)"
