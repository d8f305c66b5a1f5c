"""State shared by LearnSPN and LearnSPMN: the network being built, tests, budgets."""

import time
from collections.abc import Sequence

import numpy as np

from rspmn.circuit import NetworkBuilder
from rspmn.learn.config import LearnConfig, LearnInfo, Progress, Report
from rspmn.learn.structure.independence import Dependence
from rspmn.learn.structure.leaves import (
    asked_family,
    check_families,
    fit_leaf,
    fit_tail,
    fit_utility,
)
from rspmn.learn.structure.rows import Rows
from rspmn.types import Ints

#: About the seconds that a value of the log takes in any case, however short the time budget is.
SECONDS_PER_VALUE = 2.5e-7


class Learner:
    """A run of structure learning."""

    def __init__(
        self,
        config: LearnConfig,
        rng: np.random.Generator,
        rows: Rows,
        utility: str | None = None,
        report: Report | None = None,
        started: float | None = None,
        seconds_per_node: float = 0.0,
    ) -> None:
        check_families(config.leaves, rows.table)
        self.config = config
        self.rng = rng
        self.utility = utility
        self.builder = NetworkBuilder()
        self.info = LearnInfo(rows=rows.total, distinct_rows=len(rows))
        self._certain: dict[tuple[str, int], int] = {}  # leaves of single categories
        self._report = report
        self._done = 0.0
        self._start = time.monotonic() if started is None else started
        self._seconds_per_node = seconds_per_node  # that later stages take, within the budget

    def seconds(self) -> float:
        """Return the time since learning began."""
        return time.monotonic() - self._start

    def leaf(self, rows: Rows, name: str) -> int:
        """Add the leaf of a variable; the leaf of a single category is added once."""
        if name == self.utility:
            return self.builder.add(fit_utility(rows, name))
        table = rows.table
        families = self.config.leaves
        if (
            name in table.ordered
            or rows.varies(name)
            or asked_family(families, name, table.columns[name].kind)
        ):
            own = self.builder.add(fit_leaf(rows, name, families))
            tail = fit_tail(rows, name, families)
            if tail is None:
                return own
            return self.builder.sum([own, self.builder.add(tail[0])], [1 - tail[1], tail[1]])
        value = (name, int(table.codes[name][rows.index].max(initial=-1)))
        if value[1] < 0 or value not in self._certain:
            found = self.builder.add(fit_leaf(rows, name, families))
            if value[1] < 0:  # missing in all of the rows
                return found
            self._certain[value] = found
        return self._certain[value]

    def leaves(self, rows: Rows, names: Sequence[str]) -> list[int]:
        """Add a leaf for each of some variables, as if they were independent."""
        return [self.leaf(rows, name) for name in names]

    def product(self, children: Sequence[int]) -> int:
        """Add a product; a single child stays as it is."""
        return children[0] if len(children) == 1 else self.builder.product(children)

    def mixture(self, totals: Sequence[float], children: Sequence[int]) -> int:
        """Add a sum, the weight of each child being that of its rows."""
        self.info.sums += 1
        weights = np.array(totals)
        return self.builder.sum(children, (weights / weights.sum()).tolist())

    def test(
        self, rows: Rows, left: Sequence[str], right: Sequence[str], strata: Ints
    ) -> Dependence:
        """Test all pairs, given the strata."""
        self.info.tests += len(left) * len(right)
        return self.config.independence(rows, left, right, strata, self.rng)

    def out_of_time(self) -> bool:
        """Return whether the time budget is used up, and record it."""
        limit = self.config.max_seconds
        if self.info.stopped_by == "seconds":
            return True
        later = self._seconds_per_node * len(self.builder)
        if limit is not None and self.seconds() + later >= limit:
            self.info.stopped_by = "seconds"
            return True
        return False

    def out_of_budget(self, depth: int) -> bool:
        """Return whether a budget is used up, and record which."""
        config = self.config
        if config.max_nodes is not None and len(self.builder) >= config.max_nodes:
            self.info.stopped_by = "nodes"
        elif not self.out_of_time() and config.max_depth is not None and depth >= config.max_depth:
            self.info.stopped_by = "depth"
            return True
        return self.info.stopped_by in ("nodes", "seconds")

    def report_done(self, weight: float) -> None:
        """Report that rows of this weight are finished or left out."""
        self._done += weight
        if self._report is not None:
            self._report(Progress(self._done, self.info.rows, len(self.builder), self.seconds()))
