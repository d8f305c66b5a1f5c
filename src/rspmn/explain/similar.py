"""Logged steps that are like a state: what was done there, and what followed."""

from collections.abc import Mapping

import numpy as np

from rspmn.data.columns import Column
from rspmn.data.episodes import Episodes, Followed
from rspmn.data.windows import Windows, distinct_states
from rspmn.errors import DataError
from rspmn.explain.explanation import SimilarStep
from rspmn.explain.text import state_text
from rspmn.infer.compiled.assign import locate
from rspmn.model import RSPMN
from rspmn.schema import Kind
from rspmn.types import Array, Bools
from rspmn.values import Mark, Value


class LoggedWindows:
    """The windows of a log, and the interface node of each.

    `log`: `Windows`, or `Episodes` to count them of.
    """

    def __init__(self, model: RSPMN, log: object) -> None:
        if isinstance(log, Episodes):
            log = Windows.from_episodes(log)
        if not isinstance(log, Windows):
            raise DataError(f"log: expected Windows or Episodes, found {type(log).__name__}")
        self.schema, self.windows = model.schema, log
        self.node = locate(model, distinct_states(log)).of_steps()  # [windows]

    def nearest(
        self, known: Mapping[str, Value], nodes: list[int], most: int
    ) -> tuple[SimilarStep, ...]:
        """Return the steps in some interface nodes that are nearest to a state.

        The distance of numbers is measured in standard deviations of the log; that of other values
        is 1 if they differ. Of steps that are equally near, those logged more often come first.
        """
        here = np.flatnonzero(np.isin(self.node, nodes))
        made = [name for name in self.schema.decisions if name in known]
        for name in made:
            here = here[self._equal(self.windows.columns[name], known[name])[here]]
        distance = np.zeros(len(here))
        for name in self.schema.state_variables:
            if name in known:
                distance += self._distance(name, known[name])[here]
        order = np.lexsort((-self.windows.counts[here], distance.round(9)))[:most]
        return tuple(self._step(int(here[k]), float(distance[k])) for k in order.tolist())

    def _equal(self, column: Column, value: Value) -> Bools:  # [windows]
        if column.kind is Kind.CONTINUOUS:
            return np.asarray(column.data == value)
        codes = [code for code, each in enumerate(column.domain) if each == value]
        return np.isin(column.data, codes)

    def _distance(self, name: str, value: Value) -> Array:  # [windows]
        column = self.windows.columns[name]
        if column.kind in (Kind.CONTINUOUS, Kind.INTEGER) and not isinstance(value, str | Mark):
            numbers = column.numbers()
            spread = float(np.nanstd(numbers)) if not column.missing.all() else 0.0
            found = np.abs(numbers - float(value)) / (spread or 1.0)
            return np.nan_to_num(found, nan=1.0)
        return np.where(self._equal(column, value), 0.0, 1.0)

    def _step(self, row: int, distance: float) -> SimilarStep:
        windows, schema, at = self.windows, self.schema, np.array([row])
        step = {name: column.take(at).decode()[0] for name, column in windows.columns.items()}
        utility = step[schema.utility]
        return SimilarStep(
            {name: step[name] for name in schema.state_variables},
            {name: step[name] for name in schema.decisions},
            float("nan") if utility is None or isinstance(utility, str | Mark) else float(utility),
            self._followed(row),
            int(windows.counts[row]),
            distance,
        )

    def _followed(self, row: int) -> str:
        followed = Followed(int(self.windows.followed[row]))
        if followed is Followed.END:
            return "the episode ended"
        if followed is Followed.UNKNOWN or self.windows.went_on[row]:
            return "not logged"
        names, at = self.schema.information_sets[0], np.array([row])
        after = {n: self.windows.next_columns[n].take(at).decode()[0] for n in names}
        return state_text(after)
