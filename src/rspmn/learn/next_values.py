"""What the next value of a variable depends on, given its value."""

from collections.abc import Sequence

from rspmn.learn.structure.batched_growth import Need
from rspmn.learn.structure.count_ahead import count_ahead
from rspmn.learn.structure.independence import PairStatistics, pair_statistics
from rspmn.learn.two_step import TwoSteps


def next_value_statistics(two: TwoSteps, name: str, causes: Sequence[str]) -> PairStatistics | None:
    """Return how the next value of a variable depends on each cause; None if it does not vary."""
    after = two.after_of(name)
    if after is None:
        return None
    return pair_statistics(two.rows, causes, (after,), two.rows.strata_of(name))


def count_next_values(two: TwoSteps, names: Sequence[str]) -> None:
    """Count the statistics of some variables of the state at once, all of them causes."""
    rows, causes = two.rows, (*two.schema.decisions, *names)
    pairs = [(name, two.after_of(name)) for name in names]
    count_ahead([Need(rows, causes, (n,), rows.strata_of(name)) for name, n in pairs if n])
