"""What a model rests on: logged steps, its growth with the log, and how its intervals hold."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rspmn.data.episodes import Episodes, check_episodes
from rspmn.errors import DataError
from rspmn.explain.picture import CHOSEN, OTHER, new_axes
from rspmn.infer.act_many import node_table
from rspmn.infer.policy import Policy
from rspmn.learn import LearnConfig, learn_rspmn
from rspmn.plot.worth import check_kind, plain
from rspmn.trust import HonestValue
from rspmn.values import is_number, show

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_coverage(policy: Policy, *, most: int = 30, axes: "Axes | None" = None) -> "Axes":
    """Plot how often each value of the first decision was logged in the most visited states.

    Parameters
    ----------
    policy
        The policy of a model that was learned.
    most
        The number of states, the most visited first.
    axes
        Where to draw; by default in a new figure.
    """
    check_kind(policy, Policy)
    table, planned = node_table(policy), policy.planned
    decision = planned.together[0]
    order = np.argsort(-np.array(table.visits), kind="stable")[:most].tolist()
    values = planned.offers.values(decision)
    counts = np.zeros((len(order), len(values)))
    branches = planned.offers.branches(decision)
    for k, row in enumerate(order):
        at = int(planned.offers.first[table.node[row]])
        here = branches[at] if at >= 0 else np.full(len(values), -1)
        known = np.flatnonzero(here >= 0)
        steps = planned.steps_of_branches(here[known], planned.after(0))
        counts[k, known] = np.where(np.isfinite(steps), steps, 0.0)
    axes = axes or new_axes(2.6 + 0.75 * len(values), 1.6 + 0.26 * len(order))
    drawn: Any = axes.imshow(np.log10(counts + 1), cmap="Blues", aspect="auto", vmin=0)
    states = table.states.items()
    labels = [", ".join(f"{name}={show(c[row])}" for name, c in states) for row in order]
    axes.set_yticks(range(len(order)), [label[:32] for label in labels], fontsize="small")
    axes.set_xticks(range(len(values)), [show(value) for value in values])
    for k, v in np.ndindex(*counts.shape):
        dark = counts[k, v] > 0 and np.log10(counts[k, v] + 1) > 0.6 * drawn.get_clim()[1]
        axes.text(v, k, f"{counts[k, v]:.0f}", ha="center", va="center", fontsize="x-small",
                  color="white" if dark else "#333333")  # fmt: skip
    axes.set_xlabel(decision)
    axes.set_title("logged steps by state and action", loc="left", fontsize="medium")
    return axes


def plot_learning_curve(
    log: Episodes, horizon: int, sizes: Iterable[int] | None = None, *,
    truth: Callable[[Policy], float] | None = None, config: LearnConfig | None = None,
    axes: "Axes | None" = None,
) -> "Axes":  # fmt: skip
    """Plot what is learned from the first episodes of a log: promise and honest value.

    Parameters
    ----------
    log
        Episodes.
    horizon
        The number of steps.
    sizes
        Numbers of episodes; by default six up to all of them, each twice the one before.
    truth
        Returns the true value of a policy, where it is known; it is drawn too.
    config
        How to learn.
    axes
        Where to draw; by default in a new figure.
    """
    check_episodes(log)
    given: Any = {max(1, len(log) >> k) for k in range(6)} if sizes is None else sizes
    wanted = list(given) if isinstance(given, Iterable) else []
    if not wanted or not all(is_number(n) and n in range(1, len(log) + 1) for n in wanted):
        raise DataError(f"sizes: expected numbers of episodes, 1 to {len(log)}, found {given!r}")
    sizes = sorted(int(size) for size in wanted)
    axes = axes or new_axes(6.0, 3.6)
    promises, points, low, high, true = [], [], [], [], []
    for size in sizes:
        model, _ = learn_rspmn(log[:size], config)
        policy = model.policy(horizon)
        found = policy.honest_value()
        promises.append(found.promise)
        points.append(found.point)
        low.append(found.low)
        high.append(found.high)
        if truth is not None:
            true.append(truth(policy))
    axes.fill_between(sizes, low, high, color=CHOSEN, alpha=0.18, linewidth=0,
                      label="90 % interval")  # fmt: skip
    axes.plot(sizes, points, "o-", color=CHOSEN, label="honest value")
    axes.plot(sizes, promises, "o--", color=OTHER, label="promise (MEU)")
    if true:
        axes.plot(sizes, true, "s-", color="#e69f00", label="true value")
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(sizes), [str(size) for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel("episodes")
    axes.set_ylabel(f"value, {log.schema.utility}")
    axes.legend(frameon=False)
    return plain(axes)


def plot_calibration(
    found: Sequence[HonestValue], truths: Sequence[float], axes: "Axes | None" = None
) -> "Axes":
    """Plot intervals of honest values beside true values, and say how many hold them.

    Parameters
    ----------
    found
        Honest values, of several logs or models.
    truths
        The true value of each policy.
    axes
        Where to draw; by default in a new figure.
    """
    if len(found) != len(truths):
        raise DataError(f"expected as many truths as honest values, {len(found)}: {len(truths)}")
    axes = axes or new_axes(6.0, 3.8)
    held = [each.low <= true <= each.high for each, true in zip(found, truths, strict=True)]
    order = np.argsort(truths)
    for place, k in enumerate(order.tolist()):
        colour = CHOSEN if held[k] else "#d55e00"
        axes.plot([place, place], [found[k].low, found[k].high], color=colour, linewidth=2.5)
        axes.plot(place, found[k].point, "o", color=colour, markersize=4)
        axes.plot(place, truths[k], "_", color="black", markersize=9)
    axes.plot([], [], color=CHOSEN, linewidth=2.5, label="90 % interval that contains it")
    axes.plot([], [], color="#d55e00", linewidth=2.5, label="that does not")
    axes.plot([], [], "_", color="black", markersize=9, label="true value")
    axes.set_xticks([])
    axes.set_xlabel("policies, by their true value")
    axes.set_ylabel("value")
    share = f"{sum(held)} of {len(held)} intervals contain the true value"
    axes.set_title(share, loc="left", fontsize="medium")
    axes.legend(frameon=False, fontsize="small")
    return plain(axes)
