"""Plots of policies, models and logs, by matplotlib (`rspmn[plot]`): functions that return Axes.

Each draws into the axes that it is given, or into a new figure: `plot_meu(model).figure`.
"""

from rspmn.plot.reliability import plot_calibration, plot_coverage, plot_learning_curve
from rspmn.plot.states import plot_states
from rspmn.plot.worth import plot_meu, plot_policy

__all__ = [
    "plot_calibration", "plot_coverage", "plot_learning_curve", "plot_meu", "plot_policy",
    "plot_states",
]  # fmt: skip
