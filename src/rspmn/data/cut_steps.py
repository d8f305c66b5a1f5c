"""Steps after which the log was cut: whether they earn what the same decisions earn elsewhere.

It is not known what followed them, so they are not counted where the same decision has steps of
which that is known. That loses nothing if logs are cut for reasons of their own. If they are cut
where something is earned, as when an end is logged as a cut, it loses what matters.
"""

from dataclasses import dataclass

import numpy as np

from rspmn.data.episodes import Followed
from rspmn.data.keys import group_weights, joint_groups
from rspmn.data.windows import Windows
from rspmn.types import Array

#: Standard errors by which the means differ at least.
ERRORS = 4.0
#: A difference of less than this share of the largest utility is rounding.
ROUNDING = 1e-9


@dataclass(frozen=True)
class CutSteps:
    """Steps after which the log was cut, with decisions that it also has elsewhere."""

    steps: int
    mean: float  # of their utilities
    elsewhere: float  # of the same decisions in the same states, if it is known what followed

    def __str__(self) -> str:
        return (
            f"{self.steps} steps after which the log was cut earn {self.mean:.3g} on average, the "
            f"same decisions in the same states {self.elsewhere:.3g} where the log goes on"
        )


def cut_steps_that_differ(windows: Windows) -> CutSteps | None:
    """Return steps after which the log was cut, if they earn more or less than others do.

    >>> import rspmn
    >>> schema = rspmn.Schema([["x"], ["a"]], ["a"], "u")
    >>> log = {"episode": [k // 2 for k in range(40)], "time": [0, 1] * 20, "x": [0] * 40,
    ...        "a": ["l"] * 40, "u": [0.0, 9.0] * 20}
    >>> cut_steps_that_differ(rspmn.windows(log, schema, ending="cut"))
    CutSteps(steps=20, mean=9.0, elsewhere=0.0)
    """
    utility = windows.schema.utility
    earned = windows.columns[utility].numbers()
    counts = np.where(np.isfinite(earned), windows.counts, 0).astype(np.float64)
    earned, cut = np.where(counts > 0, earned, 0.0), windows.followed == Followed.UNKNOWN
    columns = [column for name, column in windows.columns.items() if name != utility]
    groups = joint_groups(columns, len(windows)) if counts[cut].any() else None
    if groups is None:
        return None

    def total(numbers: Array) -> Array:  # [2, groups], of cut steps and of others
        return np.stack([
            group_weights(groups.codes, numbers * part, groups.size) for part in (cut, ~cut)
        ])  # fmt: skip

    steps = total(counts)
    both = (steps > 0).all(axis=0)
    if not both.any():
        return None
    steps, sums = steps[:, both], total(counts * earned)[:, both]
    squares, weight = total(counts * earned**2)[:, both], steps[0] / steps[0].sum()
    # If they earned the same, utilities of a group would have one mean and this variance.
    of_all = sums.sum(axis=0) / steps.sum(axis=0)
    variance = np.maximum(squares.sum(axis=0) / steps.sum(axis=0) - of_all**2, 0)
    error = float(np.sqrt(weight**2 @ (variance / steps).sum(axis=0)))
    mean, elsewhere = (sums / steps @ weight).tolist()
    rounding = ROUNDING * float(np.abs(earned).max())
    if abs(mean - elsewhere) <= ERRORS * error + rounding:
        return None
    return CutSteps(round(float(steps[0].sum())), mean, elsewhere)
