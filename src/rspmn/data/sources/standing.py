"""Where rows stand, as SQL has it: what tells whether the next row is the next of its episode.

That is an episode, a time, and what the row before must know of a row. Where the bounds of episodes
and times are known, it is one number, so that one difference tells what a pair of rows is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rspmn.data.sources.log_rows import EPISODE, TIME

#: Columns: what the row before must know of a row, 0 of a step and 1 + flag of a state; its place.
TOLD, PLACE = "u", "s"
NEXT = "next_"
#: Steps stand so far apart, farther than rows at one time are told apart by.
APART = 16
#: What is known of a pair besides values: how far apart its rows are, LAST if no row of its episode
#: comes after it, + BY_STEPS · steps so far, left out for a step after a step; WRONG: not in order.
REST, BY_STEPS, LAST, WRONG = "r", 64, 63, -1
#: Longer episodes are not counted in order.
MAX_STEPS = 2**40
#: Places do not exceed this.
MAX_PLACE = 2**62

#: A row, its cells as text.
Row = Mapping[str, str | None]


@dataclass(frozen=True)
class Standing:
    """Where rows stand: their episodes and times, and what is to be known of them."""

    zero: int  # the time at which episodes begin

    @classmethod
    def of(cls, zero: int, bounds: Sequence[tuple[int, int] | None]) -> "Standing":
        """Tell it in one number if the bounds of episodes and times are known and it fits.

        It is sound only if bounds hold of every row.
        """
        match bounds:
            case [(first, last), (least, most)]:
                span = most - least + 2
                largest = max(abs(first), abs(last)) * span + max(abs(least), abs(most)) + 1
                if least == zero and largest * APART < MAX_PLACE:
                    return _InOneNumber(zero, span, (first * span + least) * APART)
        return Standing(zero)

    @property
    def types(self) -> dict[str, str]:
        """The types of columns that rows do not have."""
        return {}

    @property
    def cells(self) -> dict[str, str]:
        """The columns that say so."""
        return {name: name for name in (EPISODE, TIME, TOLD)}

    def cells_of(self, row: Row) -> Row:
        """Return the cells of one row."""
        return {name: row[name] for name in self.cells}

    @property
    def rest(self) -> str:
        """What is known of a pair besides its values."""
        episode, time, told = EPISODE, TIME, TOLD
        near = f"({NEXT}{episode} = {episode} AND {NEXT}{time} = {time} + 1)"
        begins = f"({NEXT}{episode} > {episode} AND {NEXT}{time} = {self.zero})"
        alone = f"({NEXT}{episode} IS NULL AND {episode} IS NOT NULL AND {time} IS NOT NULL)"
        is_short = f"{time} < {self.zero + MAX_STEPS}"
        return _rest(
            step=f"{near} AND {NEXT}{told} = {told}",
            near=f"{near} AND {is_short}",
            apart=f"{NEXT}{told} - {told} + {APART}",
            last=f"({begins} OR {alone}) AND {is_short}",
            steps=f"{time} - {self.zero - 1}",
        )


@dataclass(frozen=True)
class _InOneNumber(Standing):
    """All of it in one number: (episode · span + time) · APART + what is to be known − least.

    A span is more than any time, so that the time after the last of one episode is none of another.
    """

    span: int
    least: int

    @property
    def types(self) -> dict[str, str]:
        """The types of columns that rows do not have."""
        return {PLACE: "BIGINT"}

    @property
    def cells(self) -> dict[str, str]:
        """The columns that say so."""
        episodes = f"CAST({EPISODE} AS BIGINT) * {self.span * APART}"
        least = f" - ({self.least})" if self.least else ""
        return {PLACE: f"{episodes} + {TIME} * {APART} + {TOLD}{least}"}

    def cells_of(self, row: Row) -> Row:
        """Return the cells of one row."""
        episode, time, told = (int(row[name] or 0) for name in (EPISODE, TIME, TOLD))
        return {PLACE: str((episode * self.span + time) * APART + told - self.least)}

    @property
    def rest(self) -> str:
        """What is known of a pair besides its values."""
        half, here, then = APART // 2, PLACE, NEXT + PLACE
        begins = f"({then} >= {here} + {APART + half} AND {then} // {APART} % {self.span} = 0)"
        return _rest(
            step=f"{then} = {here} + {APART}",
            near=f"{then} > {here} + {half} AND {then} < {here} + {APART + half}",
            apart=f"{then} - {here}",
            last=f"{begins} OR ({then} IS NULL AND {here} IS NOT NULL)",
            steps=f"{here} // {APART} % {self.span} + 1",
        )


def _rest(step: str, near: str, apart: str, last: str, steps: str) -> str:
    """Most rows are a step after a step: it is told first, and DuckDB does not look further."""
    return (
        f"CASE WHEN {step} THEN {APART} ELSE CASE "
        f"WHEN {near} THEN ({steps}) * {BY_STEPS} + {apart} "
        f"WHEN {last} THEN ({steps}) * {BY_STEPS} + {LAST} ELSE {WRONG} END END"
    )
