"""Policies: what to do in each state, how sure that is, and why.

What a policy decides, and what that is worth, is in `rspmn.infer.base_policy`. Further questions
are answered by `rspmn.trust` and `rspmn.explain`.
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
    from rspmn.trust.unseen import LoggedValues


class Policy(BasePolicy):
    """The best decisions of a model. Made by `RSPMN.policy` and `SPMN.policy`."""

    def how_sure(self, state: object = None, t: int = 0) -> "HowSure":
        """Return how sure the next decision is: intervals of all actions, and which is best.

        In each of many draws of all weights, given what was logged, an action is taken now and
        this policy followed after it. Each action has the mean and the 90 % interval of that, and
        the share of draws in which it is best. Where the model has no counts, or nothing is known
        of an action, they are NaN, and notes say why.

        Examples
        --------
        >>> from rspmn.envs.frozen_lake import frozen_lake
        >>> from rspmn.learn import learn_rspmn
        >>> model, _ = learn_rspmn(frozen_lake().generate(2000, 8, 0))
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
        """Return why the policy decides as it does in a state.

        Every action with its value, interval and support; how much of it is earned now, and where
        it leads; where the state is, which variables decide that, and the smallest change of one
        that would change the decision.

        Parameters
        ----------
        state, t
            As in `act`.
        log
            `Windows` or `Episodes`: then also the logged steps that are nearest to the state.
        similar
            The number of these.

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
        """Return what it is worth to observe a variable before the next decision.

        It is the expected utility if the variable is seen first, less that of the best decision
        now: in a state that does not have it, `None` being the start. What else the state lacks
        stays unknown. Numbers are averaged over intervals of their knots.

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
        """Return at which probability of what follows an action the best action changes.

        Parameters
        ----------
        state, t
            As in `act`.
        event
            What may follow, `{"x": 3}` or `END`; by default each of the next interface nodes. Its
            probability changes in this step only, all else keeping its proportions.

        Returns
        -------
        tuple
            The thresholds that exist, the nearest first: of the best action, where it is worth no
            more than the next best; of others, where they are worth as much as the best.
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
        """Return what the policy is worth in a state at time t, with a 90 % interval.

        `value` is the highest of many estimates, so it promises too much where data are few. Here
        the policy is valued in draws from the posterior of all weights; see `docs/trust.md`.
        Without a horizon, values are updated until they settle.

        Parameters
        ----------
        state, t
            Where the episode is: by default, at its start.
        draws
            The number of draws.
        rng
            A generator, or a seed for one.
        level
            That of the interval.

        Returns
        -------
        HonestValue
            It has `point`, `low` and `high`; the `promise`, which is `value`; the `optimism`; and
            `caveats`, which say why the interval may not hold the value.

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
        """Return the distribution of the return: mean, quantiles, tails.

        It is computed on a grid, exactly where rewards are multiples of a common unit, and has the
        value that the policy promises as its mean: in each interface node the planned decision is
        made. Rewards of an outcome that vary are normal, as `RSPMN.sample` draws them.

        Parameters
        ----------
        horizon
            The steps that count, at most those that are left; by default all. A policy for ever
            needs it.
        state, t
            Where the episode is: by default, at its start.
        episodes
            Simulate so many episodes instead, the policy acting on the states that it sees.
        rng
            A generator, or a seed for one, for that.
        points
            Points of the grid: with more of them, `error` is less.

        Examples
        --------
        >>> from rspmn.envs.paper_grid import paper_grid
        >>> found = paper_grid().policy(horizon=4).returns(state={"x": 0, "y": 0})
        >>> found.mean, found.quantile(0.05), found.error
        (16.0, 16.0, 0.0)
        """
        from rspmn.explain.returns import policy_returns

        return policy_returns(self, horizon, state, t, episodes, np.random.default_rng(rng), points)

    def tail(self, share: float = 0.1, *, points: int = 10_000) -> "TailPolicy":
        """Return the policy whose worst share of returns, from the start, has the highest mean.

        That is the conditional value at risk of the return. Such a policy depends on what was
        earned so far: `tail.act(state, t, earned)`.

        Parameters
        ----------
        share
            The share of worst returns, above 0 and at most 1; 1 is this policy.
        points
            Budgets are kept apart on a grid of so many points; exactly, where rewards are
            multiples of a unit.

        Examples
        --------
        >>> from rspmn.envs.paper_grid import paper_grid
        >>> paper_grid().policy(horizon=4).tail(0.1).value
        16.0
        """
        from rspmn.explain.tail import TailPolicy

        return TailPolicy(self, share, points)
