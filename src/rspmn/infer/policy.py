"""Policies: decisions in each state, with their uncertainty and explanations.

Decisions and values are in `rspmn.infer.base_policy`. Other methods call `rspmn.trust` and
`rspmn.explain`.
"""

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rspmn.infer.base_policy import BasePolicy

if TYPE_CHECKING:
    from rspmn.explain import Explanation, ReturnDistribution
    from rspmn.explain.explain import Explainer
    from rspmn.explain.information import InformationValue
    from rspmn.explain.sensitivity import Event, Sensitivity
    from rspmn.explain.tail import TailPolicy
    from rspmn.trust.honest import HonestValue
    from rspmn.trust.how_sure import DrawnPlan, HowSure
    from rspmn.trust.safe_choice import SafeChoice
    from rspmn.trust.step_kernel import StepKernel
    from rspmn.trust.unseen import LoggedValues


class Policy(BasePolicy):
    """The best decisions of a model, returned by `RSPMN.policy` and `SPMN.policy`."""

    #: Which plan this is, and why; None if plans were not compared with practice.
    choice: "SafeChoice | None" = None

    def how_sure(self, state: object = None, t: int = 0) -> "HowSure":
        """Return the uncertainty of the next decision: an interval for the value of each action.

        The value of an action is computed in many draws of all weights from the posterior: the
        action is taken now, and this policy is followed afterwards. Each action has the mean and
        the 90 % interval over draws, and the proportion of draws in which it is best. They are NaN
        if the model has no counts or nothing is known about the action; notes give the reason.

        Examples
        --------
        >>> from rspmn.envs.frozen_lake import frozen_lake
        >>> from rspmn.learn import learn_rspmn
        >>> model, _ = learn_rspmn(frozen_lake().generate(2000, 50, 0))
        >>> found = model.policy(8).how_sure({"cell": 14})
        >>> found.recommended.action.value
        'down'
        """
        from rspmn.trust.how_sure import how_sure

        known = self._answers.known(state)
        answers = self._answers.action_values(known, t)
        beliefs = self._answers.beliefs(known)
        possible = beliefs is not None and len(beliefs.nodes) > 0
        notes = self._logged.never(known or {}, possible)
        situation = None
        if self.model.is_counted:
            situation = self._answers.situation(known)
            notes += self.model.source.caveats
        else:
            notes += ("the model has no counts of logged steps: no intervals",)
        return how_sure(answers, self._drawn, situation, self._planned.after(t), notes)

    @cached_property
    def _logged(self) -> "LoggedValues":
        from rspmn.trust.unseen import LoggedValues

        return LoggedValues(self._observed)

    @cached_property
    def _drawn(self) -> "DrawnPlan":
        from rspmn.trust.how_sure import DrawnPlan

        return DrawnPlan(self._planned)

    def explain(
        self, state: object = None, t: int = 0, *, log: object = None, similar: int = 5
    ) -> "Explanation":
        """Return an explanation of the decision in a state.

        It has every action with its value, interval and support, its immediate reward and its next
        states; the interface nodes of the state; the effect of each variable; and the smallest
        change of a variable that would change the decision.

        Parameters
        ----------
        state, t
            As in `act`.
        log
            `Windows` or `Episodes` from which the steps most similar to the state are listed.
        similar
            The number of similar steps.

        Examples
        --------
        >>> from rspmn.envs.paper_grid import paper_grid
        >>> found = paper_grid().policy(horizon=4).explain({"x": 0, "y": 0})
        >>> found.decided, found.margin, found.actions[0].now
        ({'action': 'down'}, 10.0, -1.0)
        >>> found.actions[0].next[0].text
        'x=0, y=1'
        """
        return self._explainer.explain(state, t, log, similar)

    def value_of_information(self, state: object, variable: str, t: int = 0) -> "InformationValue":
        """Return the value of observing a variable before the next decision.

        It is the expected utility if the variable is observed, minus that of the best decision now.
        The state must not contain the variable; None is the start of an episode. Other missing
        variables remain unknown. Numbers are averaged over intervals between knots.

        Examples
        --------
        >>> from rspmn.envs.paper_grid import paper_grid
        >>> found = paper_grid().policy(horizon=4).value_of_information({"x": 0}, "y")
        >>> found.gain, found.changes
        (5.0, 0.5)
        """
        return self._explainer.value_of_information(state, variable, t)

    def sensitivity(
        self, state: object = None, t: int = 0, event: "Event | None" = None
    ) -> "tuple[Sensitivity, ...]":
        """Return the probabilities of events in the next step at which the best action changes.

        Parameters
        ----------
        state, t
            As in `act`.
        event
            An event in the next step, `{"x": 3}` or `END`; by default each interface node. Its
            probability is changed in this step only; all others keep their proportions.

        Returns
        -------
        tuple
            All thresholds, nearest first: for the best action, where its value drops to that of the
            next best; for others, where their value reaches that of the best.
        """
        return self._explainer.sensitivity(state, t, event)

    @cached_property
    def _explainer(self) -> "Explainer":
        from rspmn.explain.explain import Explainer

        return Explainer(self)

    def honest_value(
        self,
        state: object = None,
        t: int = 0,
        *,
        draws: int = 300,
        rng: np.random.Generator | int = 0,
        level: float = 0.9,
    ) -> "HonestValue":
        """Return an estimate of the true value of the policy, with an interval.

        `value` is a maximum over many estimates and is biased upwards if there is little data. Here
        the policy is evaluated in draws from the posterior of all weights; see `docs/trust.md`.
        Without a horizon, values are updated until they converge.

        Parameters
        ----------
        state, t
            The state and the time step; by default, the start of an episode.
        draws
            The number of draws.
        rng
            A random generator, or a seed.
        level
            The confidence level of the interval.

        Returns
        -------
        HonestValue
            It has `point`, `low` and `high`; the `promise`, which equals `value`; the `optimism`;
            and `caveats`, reasons why the interval may not contain the value.

        Examples
        --------
        >>> from rspmn.envs.grid_universe import grid_universe
        >>> from rspmn.learn import learn_rspmn
        >>> model, _ = learn_rspmn(grid_universe().generate(episodes=2000, horizon=8, rng=0))
        >>> found = model.policy(discount=0.9).honest_value()
        >>> found.low <= found.point <= found.high, found.kept
        (True, True)
        """
        from rspmn.trust.honest import honest_value

        return honest_value(self, state, t, draws, rng, level)

    @cached_property
    def kernel(self) -> "StepKernel | None":
        """Values this policy by logged steps alone; None without soft boxes, or without steps."""
        from rspmn.trust.step_kernel import StepKernel

        counts = self.model.soft_counts
        if counts is None or counts.sample is None:
            return None
        return StepKernel(self.model, counts.sample, self._planned)

    def returns(
        self,
        horizon: int | None = None,
        state: object = None,
        t: int = 0,
        *,
        episodes: int | None = None,
        rng: np.random.Generator | int = 0,
        points: int = 10_000,
    ) -> "ReturnDistribution":
        """Return the distribution of the return: mean, quantiles, CVaR.

        It is computed on a grid, exactly if rewards are multiples of a common unit. Its mean is the
        value of the policy in the model: each interface node follows its planned decision. Varying
        rewards of an outcome are normal, as in `RSPMN.sample`.

        Parameters
        ----------
        horizon
            The number of steps, at most those to go; by default all of them. Required if the policy
            has no horizon.
        state, t
            The state and the time step; by default, the start of an episode.
        episodes
            If above 0, simulate this number of episodes instead, with decisions in observed states.
        rng
            A random generator, or a seed, for the simulation.
        points
            The number of grid points; more points make `error` smaller.

        Examples
        --------
        >>> from rspmn.envs.paper_grid import paper_grid
        >>> found = paper_grid().policy(horizon=4).returns(state={"x": 0, "y": 0})
        >>> found.mean, found.quantile(0.05), found.error
        (16.0, 16.0, 0.0)
        """
        from rspmn.explain.policy_stages import policy_returns

        return policy_returns(self, horizon, state, t, episodes, np.random.default_rng(rng), points)

    def tail(self, share: float = 0.1, *, points: int = 10_000) -> "TailPolicy":
        """Return the policy that maximises the conditional value at risk (CVaR) of the return.

        CVaR is the mean of the worst share of returns from the start. The policy depends on the
        rewards earned so far: `tail.act(state, t, earned)`.

        Parameters
        ----------
        share
            The share of worst returns, above 0 and at most 1; 1 is this policy.
        points
            The number of grid points for budgets, which are exact if rewards are multiples of a
            unit.

        Examples
        --------
        >>> from rspmn.envs.paper_grid import paper_grid
        >>> paper_grid().policy(horizon=4).tail(0.1).value
        16.0
        """
        from rspmn.explain.tail import TailPolicy

        return TailPolicy(self, share, points)
