"""Plots: MEU against the horizon, and true value against the number of episodes."""

from pathlib import Path
from typing import Any

import numpy as np

from reproductions.paper_tables.cells import horizons
from reproductions.paper_tables.tables import Results
from rspmn.envs.domains import DOMAINS
from rspmn.errors import MissingExtraError

STYLE: dict[str, dict[str, Any]] = {
    "table": {"color": "#999999", "linestyle": "--", "marker": "s", "label": "table"},
    "counts": {"color": "#d55e00", "marker": "o", "label": "RSPMN, counts"},
    "factored": {"color": "#0072b2", "marker": "^", "label": "RSPMN, factored"},
    "bcq-tuned": {"color": "#009e73", "marker": "*", "linestyle": "", "label": "BCQ, tuned"},
    "bcq-default": {"color": "#cc79a7", "marker": "x", "linestyle": "", "label": "BCQ, defaults"},
}


def _axes(count: int) -> tuple[Any, Any, list[Any]]:
    """Return a figure with so many axes, four in a row."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtraError("plots need matplotlib: pip install 'rspmn[plot]'") from None
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "rspmn"  # the same plot, the same bytes
    wide = min(4, count)
    rows = -(-count // wide)
    figure = Figure(figsize=(3.3 * wide, 2.8 * rows))
    FigureCanvasSVG(figure)
    axes = figure.subplots(rows, wide, squeeze=False).ravel()
    for unused in axes[count:]:
        unused.axis("off")
    return figure, mpl, list(axes[:count])


def plot_horizons(results: Results, path: Path) -> None:
    """Draw the MEU against the horizon, with the exact curve."""
    figure, _, axes = _axes(len(results.domains))
    for axis, name in zip(axes, results.domains, strict=True):
        curve = results.of(name, "factored")[0]["curve"]
        axis.plot(curve["horizons"], curve["exact"], color="black", linewidth=1, label="exact")
        style = STYLE["factored"] | {"linestyle": "", "label": "RSPMN"}
        axis.plot(curve["horizons"], curve["meu"], ms=5, **style)
        axis.set(title=name, xlabel="steps", xscale="log")
    axes[0].set_ylabel("MEU")
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def plot_episodes(results: Results, path: Path) -> None:
    """Draw the true value of policies against the number of episodes."""
    figure, _, axes = _axes(len(results.domains))
    for axis, name in zip(axes, results.domains, strict=True):
        h = horizons(name)[0]
        for way, style in STYLE.items():
            numbers = [e for e in results.episodes(name) if results.of(name, way, e)]
            worths = [[f[f"worth_{h}"] for f in results.of(name, way, e)] for e in numbers]
            if not numbers:
                continue
            spread = [np.std(w, ddof=1) / len(w) ** 0.5 if len(w) > 1 else 0.0 for w in worths]
            axis.errorbar(numbers, [np.mean(w) for w in worths], spread, ms=5, **style)
        best = DOMAINS[name]().optimum(h)
        axis.axhline(best, color="black", linewidth=0.8, label="optimal, exact")
        axis.set(title=f"{name}, {h} steps", xlabel="episodes", xscale="log")
    axes[0].set_ylabel("true value of the policy")
    handles: dict[str, Any] = {}
    for axis in axes:
        handles |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles.keys(), fontsize=8, loc="lower center", ncols=6)
    figure.tight_layout(rect=(0, 0.06, 1, 1))  # the legend is below the axes
    figure.savefig(path, metadata={"Date": None})
