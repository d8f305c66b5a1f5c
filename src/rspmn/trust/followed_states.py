"""What a plan is worth where states lie between interface nodes: states are followed as points.

Values between knots are interpolated in every step of planning, and where they curve each step errs
to the same side: a pole that is kept up for 200 steps may seem to fall after 80. Moves, ends and
rewards curve far less. So the plan is followed from state to state: in each step the state is
placed between knots, the plan decides as it does there, and the state moves by what is expected of
this decision at the knots around it, with the noise of the log. Walks are made in several draws of
what is expected, so that values have intervals.
"""

import math
from collections.abc import Mapping
from itertools import product

import numpy as np

from rspmn.data.tables import as_table
from rspmn.infer.compiled.beliefs import Beliefs
from rspmn.infer.compiled.layers import ranges
from rspmn.infer.compiled.mixture import decide
from rspmn.infer.compiled.node_membership import categories, knots
from rspmn.infer.compiled.planned import Plan
from rspmn.trust.soft_box_draws import SoftPosterior
from rspmn.types import Array, Bools, Ints
from rspmn.values import Value

#: Draws of what is expected, at most and at least, and the walks in each that are made together.
DRAWS, LEAST_DRAWS, WALKS = 100, 20, 10
#: More walks are made until means vary no more than by this share because walks are few; not if
#: there are so many in each draw, or so many steps in all.
SAMPLED, MOST_WALKS, MOST_MOVES = 0.1, 200, 400_000
#: At most this many floats are held by the draws.
MOST_FLOATS = 40_000_000
#: So many steps are followed at most; what comes after them is interpolated.
MOST_STEPS = 500
#: A variance below this share of the squared range is rounding.
ROUNDING = 1e-9
#: A walk of which less than this share goes on is over.
LEAST = 1e-4


class FollowedStates:
    """Follows a plan through states of soft boxes.

    Parameters
    ----------
    posterior
        What is expected of branches, and how sure that is.
    planned
        The plan.
    """

    def __init__(self, posterior: SoftPosterior, planned: Plan) -> None:
        self.posterior, self.planned, self.model = posterior, planned, posterior.model
        points = knots(self.model)
        self.names, self.categories = list(points), categories(self.model)
        self.points = np.nan_to_num(np.stack([*points.values()], axis=1))  # [interfaces, numbers]
        inner = np.arange(len(self.points)) != self.model.end
        self.lowest, self.highest = self.points[inner].min(axis=0), self.points[inner].max(axis=0)
        on = np.maximum(1 - posterior.end, 1e-12)[:, None]
        centre = (self.lowest + self.highest) / 2  # squares of numbers far from 0 would be rounded
        around = np.where(inner[:, None], self.points - centre, 0.0)
        mean, square = (np.asarray(posterior.leads @ x) / on for x in (around, around**2))
        self.lands = centre + mean  # [branches, numbers]
        self.spread = np.maximum(square - mean**2, 0)  # [branches, numbers]
        goes_on = posterior.leads.copy()
        goes_on.data[goes_on.indices == self.model.end] = 0.0
        self.goes_on = goes_on  # [branches, interfaces], without the end
        self.branch = self._branches()  # [joint decisions, interfaces], -1 for none
        self.noise = self._noise()  # [joint decisions, numbers], standard deviations

    def _branches(self) -> Ints:
        """Return the innermost branch of each joint decision in each interface node."""
        offers, level = self.planned.offers, self.model.bellman.levels[0]
        place = np.full(int(offers.starts[-1]) + 1, -1)
        number = offers.number[level.nodes]
        place[ranges(offers.starts[number], offers.starts[number + 1])[0]] = np.arange(
            len(level.untried)
        )
        names, next_max = self.planned.together, np.append(offers.next, -1)
        found = []
        for joint in product(*(range(len(offers.values(name))) for name in names)):
            at = offers.first
            for name, code in zip(names, joint, strict=True):
                branch = np.where(at >= 0, offers.branches(name)[at, code], -1)
                at = next_max[branch]
            found.append(place[branch])
        return np.stack(found)

    def _noise(self) -> Array:
        """Return by how much moves differ from what is expected of them.

        A branch of n steps is as sure as the mean of m draws from its weights: m is
        (n + κ) · s² / σ² of the number where that is least, s² the variance of the weights and σ²
        that of the noise, which is the same for all branches of a decision. So it is the least
        (n + κ) · s² / m of them.
        """
        sure = (self.posterior.known / np.maximum(self.posterior.landing, 1e-9))[:, None]
        varies = self.spread > ROUNDING * (self.highest - self.lowest) ** 2
        varies &= (self.posterior.end < 1)[:, None]
        sure = np.where(varies, sure * self.spread, np.inf)
        found = [sure[mine[mine >= 0]].min(axis=0, initial=np.inf) for mine in self.branch]
        return np.sqrt(np.where(np.isinf(found), 0.0, found))

    def values(
        self,
        nodes: Array | None,
        known: Mapping[str, Value],
        after: int,
        draws: int,
        rng: np.random.Generator,
    ) -> Array:  # [draws]
        """Return what the plan is worth in each of some draws.

        Parameters
        ----------
        nodes
            The probability of each interface node at first, [interfaces]; None if episodes begin.
        known
            What is known of the first state.
        after
            The number of steps after the first; 0 if they never end.
        draws
            The number of draws, at most.
        rng
            A random generator.
        """
        posterior, horizon = self.posterior, self.planned.horizon
        most = MOST_FLOATS // ((2 + len(self.names)) * len(self.lands))
        draws = max(LEAST_DRAWS, min(draws, DRAWS, most))
        first = posterior.draw_starts(draws, rng) if nodes is None else np.tile(nodes, (draws, 1))
        errors = _Errors(self, draws, rng)
        steps = min(MOST_STEPS if horizon is None else after + 1, MOST_STEPS)
        earned, moves = np.zeros((draws, 0)), 0
        while True:
            walks = _Walks(self, errors, first, known, rng)
            for k in range(steps):
                left = 0 if horizon is None else after - k
                goes_on = horizon is None or left > 0
                moves += len(walks.going)
                walks.step(left, interpolated=goes_on and k == steps - 1)
                if not len(walks.going):
                    break
            earned = np.column_stack([earned, walks.earned.reshape(draws, WALKS)])
            sampled, all_ = _variances(earned)
            enough = sampled <= SAMPLED * all_ or earned.shape[1] >= MOST_WALKS
            if enough or moves >= MOST_MOVES:
                return _without_sampling(earned)


class _Errors:
    """How far what is expected of branches is off, in each of some draws."""

    def __init__(self, followed: FollowedStates, draws: int, rng: np.random.Generator) -> None:
        posterior, (size, numbers) = followed.posterior, followed.lands.shape
        known, end = np.maximum(posterior.known, 1e-9), posterior.end
        #: Of utilities and of moves, by their noise; [1 + numbers, draws, branches].
        self.errors = rng.standard_normal((1 + numbers, draws, size))
        self.errors -= self.errors.mean(axis=1, keepdims=True)
        self.errors /= np.sqrt(known)
        self.errors[0] *= np.sqrt(posterior.variance)
        self.end = np.tile(end, (draws, 1))  # [draws, branches]
        open_ = np.flatnonzero((end > 0) & (end < 1))
        ends, goes_on = known[open_] * end[open_], known[open_] * (1 - end[open_])
        self.end[:, open_] = rng.beta(ends, goes_on, (draws, len(open_)))


class _Walks:
    """States on their way, some in each draw of what is expected.

    `followed`: what is expected. `errors`: how far that is off in each draw. `first`: the
    probability of each interface node at first, in each draw. `known`: what is known of the first
    state. `rng`: a random generator.
    """

    def __init__(
        self,
        followed: FollowedStates,
        errors: _Errors,
        first: Array,
        known: Mapping[str, Value],
        rng: np.random.Generator,
    ) -> None:
        self.followed, self.rng, self.draw = followed, rng, np.repeat(np.arange(len(first)), WALKS)
        self.errors, self.end = errors.errors, errors.end
        self.earned = np.zeros(len(self.draw))  # [all walks]
        self.number, self.going = np.arange(len(self.draw)), np.ones(len(self.draw))  # [walks]
        rank = first.cumsum(axis=1)[self.draw]
        picked = (rank < rank[:, -1:] * rng.random((len(self.draw), 1))).sum(axis=1)
        points = followed.points
        mean = (first @ points / first.sum(axis=1, keepdims=True))[self.draw]
        apart = spread_of_states(points, first.mean(axis=0))
        self.numbers = mean + apart * (points[picked] - mean)  # [walks, numbers]
        self.categories = {name: values[picked] for name, values in followed.categories.items()}
        for k, name in enumerate(followed.names):
            if isinstance(number := known.get(name), int | float):
                self.numbers[:, k] = number

    def step(self, after: int, interpolated: bool) -> None:
        """Decide and move; or decide, and interpolate what this and all further steps earn."""
        f, posterior = self.followed, self.followed.posterior
        beliefs = self._beliefs()
        codes, _ = decide(f.planned, beliefs, after)
        sizes = [len(f.planned.offers.values(name)) for name in f.planned.together]
        joint = np.ravel_multi_index(tuple(np.maximum(codes, 0)), sizes)  # [walks]
        walk = np.repeat(np.arange(len(joint)), np.diff(beliefs.starts))  # [pairs]
        branch = f.branch[joint[walk], beliefs.nodes]
        share = np.where((branch >= 0) & (codes[0, walk] >= 0), beliefs.weights, 0.0)
        total = np.bincount(walk, share, len(joint))
        share /= np.maximum(total, 1e-300)[walk]
        self.going = np.where(total > 0, self.going, 0.0)  # nothing is known of the others

        def mean(of_pairs: Array) -> Array:  # [walks]
            return np.asarray(np.bincount(walk, share * of_pairs, len(joint)), dtype=np.float64)

        if interpolated:
            worth = f.planned.at(after).choices.worth[0][branch]
            self.earned[self.number] += self.going * mean(np.where(share > 0, worth, 0.0))
            return
        drawn = self.draw[walk]
        utility, *errors = (each[drawn, branch] for each in self.errors)
        moves = (f.lands[branch] - f.points[beliefs.nodes]).T
        self.earned[self.number] += self.going * mean(posterior.mean[branch] + utility)
        self.going = self.going * (1 - mean(self.end[drawn, branch])) * f.planned.discount
        moved, off = (np.stack([mean(each) for each in kind], axis=1) for kind in (moves, errors))
        noise = f.noise[joint] * (off + self.rng.standard_normal(off.shape))
        self.numbers = np.clip(self.numbers + moved + noise, f.lowest, f.highest)
        if self.categories:
            self._draw_categories(walk, share, branch)
        self._leave_out(self.going < LEAST)

    def _leave_out(self, over: Bools) -> None:
        """Follow some walks no further."""
        if over.any():
            self.draw, self.number = self.draw[~over], self.number[~over]
            self.going, self.numbers = self.going[~over], self.numbers[~over]
            self.categories = {name: each[~over] for name, each in self.categories.items()}

    def _beliefs(self) -> Beliefs:
        """Return how far each state belongs to which interface nodes."""
        index, count = self.followed.model.state_index, len(self.draw)
        table = as_table({
            **dict.fromkeys(index.names, np.full(count, None, dtype=object)), **self.categories,
            **dict(zip(self.followed.names, self.numbers.T, strict=True)),
        })  # fmt: skip
        columns = {name: table.coded(name, index.schema.kinds.get(name)) for name in index.names}
        pairs = index.pairs(columns, count)
        logs = pairs.logs + index.prior[pairs.node]
        return Beliefs.of_logs(np.bincount(pairs.row, minlength=count), pairs.node, logs)

    def _draw_categories(self, walk: Ints, share: Array, branch: Ints) -> None:
        """Draw the next categories: those of a node that one of the branches leads to.

        Walks that are over have none, and walks of which that is not known go no further.
        """
        goes, here = self.followed.goes_on, np.flatnonzero(self.going >= LEAST)
        starts = np.searchsorted(walk, np.arange(len(self.draw) + 1))
        taken = branch[drawn_of_each(share, starts[here], starts[here + 1], self.rng)]
        known = np.diff(goes.indptr)[taken] > 0
        self.going[here[~known]] = 0.0
        here, taken = here[known], taken[known]
        place = drawn_of_each(goes.data, goes.indptr[taken], goes.indptr[taken + 1], self.rng)
        for name, values in self.followed.categories.items():
            self.categories[name] = self.categories[name].copy()
            self.categories[name][here] = values[goes.indices[place]]


def drawn_of_each(
    weights: Array, starts: Ints, stops: Ints, rng: np.random.Generator
) -> Ints:  # [ranges]
    """Return a place in each of some ranges, drawn by the weights.

    >>> drawn_of_each(np.array([0.0, 1.0, 2.0, 0.0]), [0, 2], [2, 4], np.random.default_rng(0))
    array([1, 2])
    """
    total = np.concatenate([[0.0], np.cumsum(weights)])
    low, high = total[starts], total[stops]
    place = np.searchsorted(total, low + rng.random(len(low)) * (high - low), side="right") - 1
    return np.asarray(np.clip(place, starts, np.maximum(np.subtract(stops, 1), starts)))


def spread_of_states(points: Array, weights: Array) -> Array:  # [numbers]
    """Return by how much less states vary than the knots that share them: standard deviations.

    A state that is shared by two knots at distance h varies less than they do: on average, if all
    places between them are as probable, by h² / 6 (Sheppard's correction, for linear weights).

    >>> spread_of_states(np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 2.0, 1.0])).round(4)
    array([0.8165])
    """
    here = weights > 0
    points, weights = points[here], weights[here] / weights.sum()
    variance = weights @ (points - weights @ points) ** 2
    found = np.ones(points.shape[1])
    for k in np.flatnonzero(variance > 0).tolist():
        at, which = np.unique(points[:, k], return_inverse=True)
        if len(at) == 1:  # what varies is the rounding of their mean
            continue
        gaps = np.diff(at) ** 2
        around = (np.append(gaps[0], gaps) + np.append(gaps, gaps[-1])) / 2
        within = weights @ around[which] / 6
        found[k] = np.sqrt(max(0.0, 1 - within / variance[k]))
    return found


def _variances(values: Array) -> tuple[float, float]:
    """Return by how much means of draws vary because walks are few, and in all."""
    sampled = values.var(axis=1, ddof=1).mean() / values.shape[1]
    return float(sampled), float(values.mean(axis=1).var(ddof=1))


def _without_sampling(values: Array) -> Array:  # [draws]
    """Return the means of the walks of each draw, varying as if there were many more walks.

    Their variance is σ² + s, where s is due to walks being few, and known well. The variance of
    the draws alone may be less than s by chance, which does not mean that σ² is 0: the expectation
    of σ² is taken, given that it is positive. With n degrees of freedom and the variance v of the
    means, σ² + s is v · n / χ², an inverse gamma variable, above s.
    """
    from scipy.special import gammainc

    means = values.mean(axis=1)
    sampled, all_ = _variances(values)
    if not (sampled > 0 and all_ > 0):
        return np.asarray(means)
    shape = (len(values) - 1) / 2
    rate = shape * max(all_, sampled)
    known = gammainc(shape - 1, rate / sampled) / gammainc(shape, rate / sampled)
    share = math.sqrt(min(1.0, max(0.0, rate / (shape - 1) * known - sampled) / all_))
    return np.asarray(means.mean() + share * (means - means.mean()))
