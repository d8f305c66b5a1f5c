"""Values without a horizon: the limit of ever more Bellman updates.

Near the limit the best choices no longer change, and with the choices fixed the template is a
Markov chain over interface nodes, whose limit is the solution of linear equations. So the
limit is solved for, not waited for; a last update shows that it is one.

With a discount below 1 there always is a limit, found by policy iteration. Without discount,
values settle if every part of the chain that is never left earns 0 per step on average, and is
not periodic.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.errors import ConvergenceError
from rspmn.infer.compiled.bellman import Chain
from rspmn.infer.compiled.finite_horizon import Update
from rspmn.infer.compiled.limit_by_updates import (
    discounted_limit,
    is_large,
    limit_with_end,
    supports_by_updates,
)
from rspmn.infer.compiled.sparse_equations import solved
from rspmn.infer.criterion import MEU, Criterion
from rspmn.model import RSPMN
from rspmn.types import Array, Bools, Ints

#: A solution is accepted when one more update changes it by no more than this, relative to the
#: largest value: well above what rounding does to it.
SETTLED = 1e-11
MOST_ROUNDS = 50  # of policy iteration; a handful is usual
#: After the usual number of rounds, so many updates are made before each.
USUAL_ROUNDS, BETWEEN = 8, 32
MOST_UPDATES = 2**13  # before giving up: a few seconds, however the model was made


def limit(model: RSPMN, discount: float, criterion: Criterion = MEU) -> tuple[Array, float]:
    """Return the value of every interface node in the limit, and how far it may be off.

    The bound is proven with a discount. Without one it is the last update's change times the
    longest expected time until the chain enters a part that it never leaves.
    """
    greedy = Update(model.bellman, discount, criterion)
    if discount < 1:
        found: tuple[Array, float] | None = _discounted(greedy)
    else:
        found = limit_with_end(greedy, model.end) if is_large(model.bellman) else None
    values, bound = found or _without_discount(greedy)
    if model.unknown is not None:
        values[model.unknown] = -np.inf
    return values, bound


def supports_of_limit(
    model: RSPMN,
    values: Array,
    delays: Array | None,
    discount: float,
    criterion: Criterion = MEU,
    within: float = 0.0,
) -> Array:  # [interfaces]
    """Return the share that is supported for ever, of every interface node.

    It is the probability of never being where it is not known what follows; with a discount, until
    the episode ends, which goes on with that probability.
    """
    from scipy.sparse import block_array, csr_array, identity

    bellman, size = model.bellman, model.num_interfaces
    if bellman.all_known(criterion):
        return np.ones(size)
    values = np.where(np.isfinite(values), values, 0.0)
    found = bellman.choose(values, delays, discount, False, criterion, within=within)
    if is_large(bellman):
        return supports_by_updates(bellman, found, discount)
    leads = bellman.leaking_chain(found)
    kept, _ = bellman.supports(found, np.ones(size), 1.0, last=False)  # of this step
    onwards = np.asarray(leads.sum(axis=1)).ravel()
    if discount < 1:
        system = identity(size, format="csc") - discount * leads
        return np.clip(solved(system, kept - discount * onwards), 0.0, 1.0)
    over = np.stack([1 - kept, kept - onwards], axis=1)  # to nodes that are never left
    over[over < SETTLED] = 0.0
    follows = block_array([[leads, csr_array(over)], [None, identity(2)]], format="csr")
    settled, _, reason = settle(
        Chain(np.zeros(size + 2), follows), np.append(np.ones(size), [0.0, 1.0])
    )
    if settled is None:
        raise ConvergenceError(f"the support without a horizon is unknown: {reason}")
    return np.clip(settled[:size], 0.0, 1.0)


def _discounted(greedy: Update) -> tuple[Array, float]:
    """Return the limit with a discount: of large models by updates, if these get there."""
    values = np.zeros(greedy.bellman.interfaces)
    if is_large(greedy.bellman):
        values, bound = discounted_limit(greedy)
        if bound < math.inf:
            return values, bound
    return _by_policy_iteration(greedy, values)


def _by_policy_iteration(greedy: Update, values: Array) -> tuple[Array, float]:
    """Solve for the values of the best choices, and choose again.

    Where a reward is far away, choices change near it first, and one round tells only their
    neighbours. Updates between rounds tell those that are further away, for less.
    """
    from scipy.sparse import identity

    size, discount = greedy.bellman.interfaces, greedy.discount
    for number in range(MOST_ROUNDS):
        for _ in range(BETWEEN if number >= USUAL_ROUNDS else 0):
            values = greedy.of_finite(values)
        chain = greedy.bellman.chain(greedy.choices(values))
        system = identity(size, format="csc") - discount * chain.follows
        values = solved(system, chain.rewards)
        change = _change(greedy.of_finite(values), values)
        if change <= SETTLED * np.abs(values).max():
            return values, (change + _rounding(values)) / (1 - discount)
    return _by_updates(greedy, values)


def _by_updates(greedy: Update, values: Array) -> tuple[Array, float]:
    """Update until nothing moves.

    Where frontier nodes do as the worst of others do, the choices of the best and of the worst may
    alternate, but each update brings the values nearer to their limit.
    """
    discount = greedy.discount
    nearer = math.log(SETTLED * (1 - discount)) / math.log(discount)
    for _ in range(min(int(nearer) + 100, MOST_UPDATES)):
        before, values = values, greedy.of_finite(values)
        change = float(np.abs(values - before).max())
        if change <= SETTLED * (1 - discount) * np.abs(values).max():
            break
    return values, (change + _rounding(values)) / (1 - discount)


def _without_discount(greedy: Update) -> tuple[Array, float]:
    """Return the limit of updates from 0.

    Let s be where the choices of now lead for ever, from the values V of now. No update moves a
    value up past the best choices, so s is no more than the limit; where V is no more than s,
    updates from s lead to the same limit, and go on from there. So a value that grows by a
    millionth in each step, until another choice is the best, is not waited for.
    """
    values = np.zeros(greedy.bellman.interfaces)
    steps, stretch = 0, 16
    while steps + stretch <= MOST_UPDATES:
        for _ in range(stretch):
            before, values = values, greedy.of_finite(values)
        steps, stretch = steps + stretch, 2 * stretch
        chain = greedy.bellman.chain(greedy.choices(values))
        settled, patience, reason = settle(chain, values)
        if settled is None:
            if np.array_equal(values, before):  # nor do further updates change them
                break
            # The change per step never grows; if the average of a part is not 0, it is lasting.
            if steps >= 64 + 4 * len(values):
                raise ConvergenceError(
                    f"{reason}: without a horizon the values have no limit; "
                    "give a horizon or a discount below 1"
                )
            continue
        change = _change(greedy.of_finite(settled), settled)
        if change <= SETTLED * max(np.abs(settled).max(), np.abs(chain.rewards).max()):
            return settled, (change + _rounding(settled)) * patience
        near = SETTLED * np.abs(values).max()
        if greedy.takes_means_and_maxima and (settled >= values - near).all():
            values = np.maximum(values, settled)
    raise ConvergenceError(
        f"the values did not converge within {steps} steps: give a horizon or a discount below 1"
    )


def _rounding(values: Array) -> float:
    """Return what rounding may have hidden of a change: eight units in the last place."""
    return 8 * float(np.spacing(np.abs(values).max()))


def _change(updated: Array, values: Array) -> float:
    differ = updated != values  # where nothing is known, both are -∞
    return float(np.abs(updated[differ] - values[differ]).max(initial=0.0))


# ---- the limit of a chain ---------------------------------------------------------------


def settle(chain: Chain, values: Array) -> tuple[Array | None, float, str]:
    """Return where updates of a fixed chain lead from `values`: their limit, or why there is none.

    Also the longest expected time until the chain enters a part that it never leaves.
    """
    from scipy.sparse import identity
    from scipy.sparse.csgraph import connected_components

    count, part = connected_components(chain.follows, directed=True, connection="strong")
    sources, targets = chain.follows.nonzero()
    never_left = np.ones(count, dtype=bool)
    never_left[part[sources[part[sources] != part[targets]]]] = False
    alone = never_left[part] & (np.bincount(part)[part] == 1)
    settled = np.where(alone & (chain.rewards == 0), values, np.nan)
    for inside in _members(part, never_left[part] & np.isnan(settled)):
        found, reason = _settle_part(chain, inside, values)
        if found is None:
            return None, math.inf, reason
        settled[inside] = found
    passing = np.flatnonzero(np.isnan(settled))
    if not len(passing):
        return settled, 1.0, ""
    for_ever = np.flatnonzero(~np.isnan(settled))
    system = identity(len(passing), format="csc") - chain.follows[passing][:, passing]
    earned = chain.rewards[passing] + chain.follows[passing][:, for_ever] @ settled[for_ever]
    try:
        settled[passing] = solved(system, earned)
        times = solved(system, np.ones(len(passing)))
    except np.linalg.LinAlgError:  # what is left has a probability that rounding loses
        return None, math.inf, "values depend on probabilities that are too small to be added"
    return settled, 1.0 + float(times.max()), ""


def _members(part: NDArray[Any], among: Bools) -> list[Ints]:
    """Return the numbers of the nodes of each part, of some nodes."""
    nodes = np.flatnonzero(among)
    nodes = nodes[np.argsort(part[nodes], kind="stable")]
    return np.split(nodes, np.flatnonzero(np.diff(part[nodes])) + 1) if len(nodes) else []


def _settle_part(chain: Chain, inside: Ints, values: Array) -> tuple[Array | None, str]:
    """Return the limit in a part that is never left, or why it has none.

    With stationary distribution π and rewards r: there is one only if π·r = 0, and then it is
    the solution of (I - P) v = r whose average π·v is that of the values now, which no update
    changes. Both equations lack one, which is made up for by what is known of one node.
    """
    from scipy.sparse import identity

    moves, rewards = chain.follows[inside][:, inside].tocsr(), chain.rewards[inside]
    size, one = len(inside), _often_visited(moves)
    others = np.delete(np.arange(size), one)
    system = identity(size - 1, format="csr") - moves[others][:, others]
    stationary = np.ones(size)
    if size > 1:
        stationary[others] = solved(system.T, moves[[one]].toarray()[0, others])
    stationary /= stationary.sum()
    gain = float(stationary @ rewards)
    if abs(gain) > SETTLED * np.abs(rewards).max(initial=0.0):
        return None, f"values change by {gain:.6g} per step"
    average = float(stationary @ values[inside])
    if not rewards.any():
        return np.full(size, average), ""
    if _period(moves) > 1:
        return None, "values oscillate"
    bias = np.zeros(size)
    bias[others] = solved(system, (rewards - gain)[others])
    return bias - stationary @ bias + average, ""


def _often_visited(moves: Any) -> int:
    """Return a node that a chain visits often: one that is visited hardly ever says little."""
    share = np.full(moves.shape[0], 1 / moves.shape[0])
    for _ in range(50):
        share = (share + moves.T @ share) / 2  # half of the steps stay: it has no period
    return int(share.argmax())


def _period(moves: Any) -> int:
    """Return the greatest common divisor of the lengths of all circles of a connected chain."""
    from scipy.sparse.csgraph import breadth_first_order

    order, before = breadth_first_order(moves, 0)
    depth = np.zeros(len(order), dtype=np.int64)
    for node in order[1:].tolist():
        depth[node] = depth[before[node]] + 1
    sources, targets = moves.nonzero()
    return int(np.gcd.reduce(depth[sources] + 1 - depth[targets]))
