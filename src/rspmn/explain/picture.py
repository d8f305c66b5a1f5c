"""Pictures of explanations and of returns; matplotlib is imported when one is drawn."""

import math
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from rspmn.errors import MissingExtraError
from rspmn.explain.explanation import ActionReason, Explanation
from rspmn.explain.return_distribution import ReturnDistribution
from rspmn.explain.text import change_text, state_text
from rspmn.types import Array
from rspmn.values import show, show_steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Of the chosen action, and of the others.
CHOSEN, OTHER = "#1f6fb4", "#9a9a9a"


def new_axes(width: float, height: float) -> "Axes":
    """Return axes of a new figure; needs `rspmn[plot]`."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("pictures need matplotlib: pip install 'rspmn[plot]'") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    axes: Axes = figure.add_subplot()
    return axes


def as_file(axes: "Axes", form: str) -> bytes:
    """Return the figure of some axes as a PNG or SVG; the same each time it is drawn."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    found, figure = BytesIO(), axes.get_figure()
    assert isinstance(figure, Figure), "new axes are in a figure of their own"
    with mpl.rc_context({"svg.hashsalt": "rspmn"}):
        figure.savefig(found, format=form, metadata={"Date": None} if form == "svg" else None)
    return found.getvalue()


def draw_actions(found: Explanation, axes: "Axes | None" = None) -> "Axes":
    """Draw what each action is worth, with its interval; the bar is what is earned now."""
    actions = [action for action in found.actions if not math.isnan(action.utility)]
    axes = axes or new_axes(7.0, 1.6 + 0.38 * max(1, len(actions)))
    for place, action in enumerate(actions):
        _draw_action(axes, -place, action, chosen=place == 0 and found.decided is not None)
    axes.set_yticks([-place for place in range(len(actions))], [show(a.value) for a in actions])
    axes.set_ylim(-len(actions) + 0.4, 0.6)
    axes.margins(x=0.12)
    axes.set_xlabel("value, with its 90 % interval; bar: earned in this step")
    axes.set_ylabel(found.decision)
    axes.set_title(_title(found), loc="left", fontsize="medium")
    axes.axvline(0, color="#cccccc", linewidth=0.8, zorder=0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes


def _draw_action(axes: Any, y: float, action: ActionReason, chosen: bool) -> None:
    color = CHOSEN if chosen else OTHER
    if not math.isnan(action.now):
        axes.barh(y, action.now, height=0.5, color=color, alpha=0.25, linewidth=0)
    if not math.isnan(action.low):
        ends = [action.low, action.high]
        axes.plot(ends, [y, y], color=color, linewidth=3, solid_capstyle="butt")
    axes.plot(action.utility, y, "o", color=color, markersize=7)
    note = show_steps(action.steps) if action.steps else "no logged steps"
    right = action.utility if math.isnan(action.high) else max(action.high, action.utility)
    axes.annotate(
        note, (max(right, 0.0), y), xytext=(8, 0), textcoords="offset points", va="center",
        fontsize="small", color="#555555",
    )  # fmt: skip


def _title(found: Explanation) -> str:
    state = state_text(found.state) if found.state else "the start"
    made = "nothing known to do" if found.decided is None else state_text(found.decided)
    close = " (too close to call)" if found.too_close else ""
    change = found.smallest_change
    return f"{state}: {made}{close}" + (f"\n{change_text(change)}" if change else "")


def steps_below(found: ReturnDistribution) -> tuple[Array, Array]:  # [n + 1] each
    """Return the returns, and the probability of no more than each, from 0 on."""
    below = np.concatenate([[0.0], np.cumsum(found.probabilities)])
    return np.concatenate([found.values[:1], found.values]), below


def draw_returns(found: ReturnDistribution, axes: "Axes | None" = None) -> "Axes":
    """Draw how probable it is not to exceed each return."""
    axes = axes or new_axes(6.0, 3.2)
    axes.step(*steps_below(found), where="post", color=CHOSEN)
    axes.axvline(found.mean, color=OTHER, linestyle="--", linewidth=1)
    axes.annotate(
        f"mean {found.mean:.4g}", (found.mean, 0.95), xytext=(4, 0), textcoords="offset points",
        color="#555555", fontsize="small",
    )  # fmt: skip
    axes.set_xlabel(f"return over {found.steps} steps")
    axes.set_ylabel("probability of at most this")
    axes.set_ylim(0, 1.02)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes
