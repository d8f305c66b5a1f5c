"""The graph of states: interface nodes, and where the best action leads."""

from typing import TYPE_CHECKING, Any

import numpy as np

from rspmn.errors import EvidenceError
from rspmn.explain.after_actions import OutcomeFinder
from rspmn.explain.picture import new_axes
from rspmn.infer.act_many import NodeTable, node_table
from rspmn.infer.compiled.beliefs import Beliefs
from rspmn.infer.compiled.mixture import Situation
from rspmn.infer.policy import Policy
from rspmn.plot.worth import check_kind
from rspmn.types import Array, Ints
from rspmn.values import show

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Names of states are shortened to this.
LONGEST = 24
#: With more nodes, edges have no probabilities beside them.
MOST_LABELLED = 15


def plot_states(
    policy: Policy, t: int = 0, *, most: int = 25, least: float = 0.05, axes: "Axes | None" = None
) -> "Axes":
    """Plot the most visited states as a graph.

    Nodes are interface nodes by their values, with the best action below: larger if they were
    visited more often, darker if they are worth more. Edges are where the best action leads.

    Parameters
    ----------
    policy, t
        The policy, and the time step.
    most
        The number of nodes to draw; the title says how many there are.
    least
        Edges of a lower probability are left out.
    axes
        Where to draw; by default in a new figure.
    """
    check_kind(policy, Policy)
    if not policy.planned.together:
        raise EvidenceError("the model has no decisions")
    table = node_table(policy, t)
    order = np.argsort(-np.array(table.visits), kind="stable")[:most]
    rows = order.tolist()
    nodes = np.array(table.node)[order]
    chances = _chances(policy, nodes, t)
    places = _places(np.maximum(chances, chances.T))
    side = 3.5 + 1.1 * np.sqrt(len(rows))
    axes = axes or new_axes(float(side) * 1.25, float(side))
    _draw_edges(axes, places, chances, least)
    values, visits = np.array(table.value)[order], np.array(table.visits)[order]
    share = visits / max(1.0, visits.max())
    drawn = axes.scatter(
        places[:, 0], places[:, 1], s=150 + 750 * share, c=values, cmap="viridis_r",
        edgecolors="#333333", linewidths=0.8, zorder=3,
    )  # fmt: skip
    for (x, y), k in zip(places.tolist(), rows, strict=True):
        made = ", ".join(show(c[k]) for c in table.decisions.values() if c[k] is not None)
        text = f"{_name(table, k)}\n{made or 'unknown'}"
        axes.annotate(
            text, (x, y), xytext=(0, -15), textcoords="offset points", ha="center", va="top",
            fontsize=7, zorder=4, bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75,
                                        "pad": 0.5},
        )  # fmt: skip
    figure: Any = axes.figure
    figure.colorbar(drawn, ax=axes, label="value", shrink=0.7)
    axes.margins(0.16)
    axes.set_axis_off()
    total = len(table.node)
    shown = f"{total} states" if total == len(rows) else f"{len(rows)} of {total} states"
    axes.set_title(
        f"{shown}: best action below each, size by visits", loc="left", fontsize="medium"
    )
    return axes


def _name(table: NodeTable, row: int) -> str:
    parts = [f"{name}={show(c[row])}" for name, c in table.states.items() if c[row] != ""]
    text = ", ".join(parts)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _chances(policy: Policy, nodes: Ints, t: int) -> Array:  # [nodes, nodes]
    """Return how probably the best action leads from each node to each other."""
    planned, outcomes = policy.planned, OutcomeFinder(policy)
    decision, found = planned.together[0], np.zeros((len(nodes), len(nodes)))
    for k, node in enumerate(nodes.tolist()):
        made, _ = policy.choices(node, t)
        at = planned.offers.first[[node]]
        if decision not in made or at[0] < 0:
            continue
        situation = Situation(planned.offers, Beliefs.certain(np.array([node])), at, decision)
        after = outcomes.after_actions(situation, planned.after(t))
        found[k] = after.leads[after.values.index(made[decision]), nodes]
    return found


def _places(ties: Array, passes: int = 200) -> Array:  # [nodes, 2]
    """Return places at distances like the steps between nodes: stress is lowered pass by pass."""
    from scipy.sparse.csgraph import shortest_path

    n = len(ties)
    far = shortest_path((ties > 0.02).astype(float), directed=False, unweighted=True)
    finite = far[np.isfinite(far)]
    far = np.where(np.isfinite(far), far, (finite.max() if len(finite) else 1.0) + 1.0)
    turn = np.arange(n) * 2.399963  # the golden angle: no two nodes start at one place
    places = np.stack([np.cos(turn), np.sin(turn)], axis=1) * np.sqrt(np.arange(n) + 1.0)[:, None]
    with np.errstate(divide="ignore"):
        weights = np.where(far > 0, far**-2.0, 0.0)
    for _ in range(passes):
        apart = places[:, None, :] - places[None, :, :]
        length = np.sqrt((apart**2).sum(axis=2)) + 1e-9
        pull = (weights * far / length)[:, :, None] * apart
        moved = (weights @ places + pull.sum(axis=1)) / np.maximum(weights.sum(axis=1), 1e-9)[
            :, None
        ]
        places = moved if n > 1 else places
    return np.asarray(places - places.mean(axis=0))


def _draw_edges(axes: Any, places: Array, chances: Array, least: float) -> None:
    for i, j in zip(*np.nonzero(chances >= least), strict=True):
        if i == j:
            continue
        style = {
            "arrowstyle": "-|>", "color": "#888888", "alpha": 0.35 + 0.6 * float(chances[i, j]),
            "lw": 0.6 + 2 * float(chances[i, j]), "shrinkA": 9, "shrinkB": 11,
            "connectionstyle": "arc3,rad=0.12",
        }  # fmt: skip
        axes.annotate("", places[j], places[i], arrowprops=style, zorder=1)
        if len(places) <= MOST_LABELLED:
            x, y = 0.62 * places[j] + 0.38 * places[i]
            dx, dy = places[j] - places[i]
            axes.text(x + 0.09 * dy, y - 0.09 * dx, f"{chances[i, j]:.0%}", fontsize=6,
                      color="#666666", ha="center", va="center", zorder=2)  # fmt: skip
