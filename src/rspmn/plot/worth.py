"""What policies are worth, and what they decide, over one or two variables."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rspmn.circuit import Leaf
from rspmn.errors import EvidenceError
from rspmn.explain.picture import CHOSEN, OTHER, new_axes
from rspmn.infer.policy import Policy
from rspmn.model import RSPMN
from rspmn.types import Array
from rspmn.values import Mark, Value, show

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Points of a number on an axis.
POINTS = 60
#: Colours of actions, told apart by people who see few colours (Okabe and Ito).
ACTIONS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#777777")
#: Where nothing is known.
UNKNOWN = "#f2f2f2"


def plot_meu(
    model: RSPMN, horizons: Sequence[int] = (1, 2, 5, 10, 20, 50), *, discount: float = 1.0,
    honest: bool = True, axes: "Axes | None" = None,
) -> "Axes":  # fmt: skip
    """Plot the maximum expected utility against the horizon, with the honest value's interval.

    Parameters
    ----------
    model
        A recurrent model.
    horizons
        The numbers of steps.
    discount
        Per step.
    honest
        Whether to draw the honest value, where the model has the counts for it.
    axes
        Where to draw; by default in a new figure.

    Examples
    --------
    >>> from rspmn.envs.paper_grid import paper_grid
    >>> plot_meu(paper_grid(), [1, 2, 4]).get_xlabel()
    'horizon, steps'
    """
    check_kind(model, RSPMN)
    given: object = horizons
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise EvidenceError(f"horizons: expected several numbers of steps, found {given!r}")
    axes = axes or new_axes(6.0, 3.6)
    values = [float(model.meu(horizon=h, discount=discount)) for h in horizons]
    axes.plot(horizons, values, "o-", color=OTHER, label="promise (MEU)")
    if honest and model.is_counted:
        found = [model.policy(h, discount=discount).honest_value() for h in horizons]
        points = [each.point for each in found]
        low, high = [each.low for each in found], [each.high for each in found]
        axes.fill_between(horizons, low, high, color=CHOSEN, alpha=0.18, linewidth=0,
                          label="90 % interval")  # fmt: skip
        axes.plot(horizons, points, "o-", color=CHOSEN, label="honest value")
    axes.set_xlabel("horizon, steps")
    axes.set_ylabel(f"value, {model.schema.utility}")
    axes.legend(frameon=False)
    return plain(axes)


def plot_policy(
    policy: Policy, x: str, y: str | None = None, given: Mapping[str, Value | None] | None = None,
    *, t: int = 0, axes: "Axes | None" = None,
) -> "Axes":  # fmt: skip
    """Plot what a policy decides, and what that is worth, over one or two variables.

    With one variable, the value is the height and the colour is the action; with two, the colour is
    the action and lighter cells are worth less. What is not given is averaged over.

    Parameters
    ----------
    policy, t
        The policy, and the time step.
    x, y
        State variables.
    given
        Values of others.
    axes
        Where to draw; by default in a new figure.
    """
    check_kind(policy, Policy)
    names = [x] if y is None else [x, y]
    for name in names:
        if name not in policy.index.names:
            raise EvidenceError(f"{name!r} is not a state variable: {list(policy.index.names)}")
    cells = [_cells(policy, name) for name in names]
    decided, worth = _asked(policy, names, cells, dict(given or {}), t)
    actions = list(dict.fromkeys(each for each in decided.ravel().tolist() if each is not None))
    colours = {action: ACTIONS[k % len(ACTIONS)] for k, action in enumerate(sorted(actions))}
    axes = axes or (new_axes(6.0, 3.4) if y is None else new_axes(5.6, 4.6))
    if y is None:
        _draw_line(axes, cells[0], decided, worth, colours)
        axes.set_ylabel(f"value, {policy.model.schema.utility}")
        plain(axes)
    else:
        _draw_grid(axes, cells, decided, worth, colours)
        axes.set_ylabel(y)
    axes.set_xlabel(x)
    others = ", ".join(f"{name}={show(v)}" for name, v in (given or {}).items() if v is not None)
    title = ", ".join(policy.planned.together) + (f", where {others}" if others else "")
    axes.set_title(title, loc="left", fontsize="medium")
    _legend(axes, colours)
    return axes


def check_kind(found: object, kind: type[RSPMN] | type[Policy]) -> None:
    """Refuse what is no model, or no policy, where one is plotted."""
    if not isinstance(found, kind):
        wanted = "a Policy, model.policy(...)" if kind is Policy else "a recurrent model"
        raise EvidenceError(f"expected {wanted}, found {type(found).__name__}")


def plain(axes: "Axes") -> "Axes":
    """Remove what frames say twice."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes


def _cells(policy: Policy, name: str) -> list[Any]:
    """Return the values of a variable in a model, or numbers over its range."""
    listed: dict[Value, None] = {}
    ends: list[float] = []
    for node in policy.index.network.nodes:
        if isinstance(node, Leaf) and node.variable == name:
            named = node.distribution.atoms()
            if named is None:
                ends += [float(end) for end in node.distribution.span()]  # type: ignore[arg-type]
            else:
                listed |= dict.fromkeys(v for v in named if not isinstance(v, Mark))
    if ends:
        return [*np.linspace(min(ends), max(ends), POINTS).tolist()]
    return sorted(listed, key=lambda value: (isinstance(value, str), value))


def _asked(
    policy: Policy, names: list[str], cells: list[list[Any]], given: dict[str, Any], t: int
) -> tuple[Any, Array]:
    """Return what is decided in each cell, None where nothing is known, and its value."""
    shape = tuple(map(len, cells))
    decided, worth = np.empty(shape, dtype=object), np.full(shape, np.nan)
    for place in np.ndindex(*shape):
        state = given | {name: cells[k][place[k]] for k, name in enumerate(names)}
        try:
            made = policy.act(state, t)
        except EvidenceError:
            continue
        decided[place] = ", ".join(map(str, made.values())) if isinstance(made, dict) else str(made)
        worth[place] = float(policy.value(state, t))
    return decided, worth


def _draw_line(
    axes: Any, cells: list[Any], decided: Any, worth: Array, colours: Mapping[str, str]
) -> None:
    numbers = all(isinstance(cell, int | float) for cell in cells)
    at = cells if numbers else range(len(cells))
    axes.plot(at, worth, color="#bbbbbb", linewidth=1, zorder=1)
    seen = [k for k, made in enumerate(decided) if made is not None]
    axes.scatter(
        [at[k] for k in seen], worth[seen], c=[colours[decided[k]] for k in seen], s=28, zorder=2
    )
    if not numbers:
        axes.set_xticks(at, [show(cell) for cell in cells])


def _draw_grid(
    axes: Any, cells: list[list[Any]], decided: Any, worth: Array, colours: Mapping[str, str]
) -> None:
    from matplotlib.colors import to_rgb

    low, high = (np.nanmin(worth), np.nanmax(worth)) if np.isfinite(worth).any() else (0.0, 1.0)
    picture = np.empty((len(cells[1]), len(cells[0]), 3))
    for i, j in np.ndindex(len(cells[0]), len(cells[1])):
        if decided[i, j] is None:
            picture[j, i] = to_rgb(UNKNOWN)
        else:
            share = 1.0 if high == low else (worth[i, j] - low) / (high - low)
            colour = np.array(to_rgb(colours[decided[i, j]]))
            picture[j, i] = 1 - (1 - colour) * (0.25 + 0.75 * share)
    axes.imshow(picture, origin="lower", aspect="auto", interpolation="nearest")
    for k, own in enumerate(cells):
        ticks = np.unique(np.linspace(0, len(own) - 1, min(len(own), 8)).round().astype(int))
        labels = [_short(own[tick]) for tick in ticks]
        (axes.set_xticks, axes.set_yticks)[k](ticks, labels)


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else show(value)


def _legend(axes: Any, colours: Mapping[str, str]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=colour, label=action) for action, colour in colours.items()]
    axes.legend(
        handles=handles,
        frameon=False,
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
        fontsize="small",
    )
