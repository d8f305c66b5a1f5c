"""Marks: what a pair of rows tells besides its values, in one integer.

Whether a step or only a state follows, what the flags say, whether it is the first step and, if it
is the last, how many there were. So a pair costs one key more, and all that can be wrong with it
can be read off its mark.
"""

from dataclasses import dataclass, field

import narwhals as nw
import numpy as np

from rspmn.data.sources.engine import Frame
from rspmn.types import Bools, Ints

MARK = "mark"
HINT, NEXT_HINT = "h", "nh"

#: What follows a row: another step, a row without decisions, no row.
STEP, STATE, NOTHING = 0, 1, 2
#: What a terminated flag says: no, yes, nothing, something that is neither.
NO, YES, UNSAID, NEITHER = 0, 1, 2, 3
#: A mark is what follows + 3 · flag + 12 · next row's flag + 48 · is first + 96 · length if last.
BY_FLAG, BY_NEXT_FLAG, BY_FIRST, BY_LENGTH = 3, 12, 48, 96
#: Marks of what must not be: a step is missing, a time stands twice, no episode or time; an empty
#: block before a full one, an empty row; an episode without a step; rows that are not in order.
GAP, TIE, EMPTY, HOLE, VOID, NO_STEP, UNORDERED = -1, -2, -3, -4, -5, -6, -7
#: The mark of a row that is not a step, but the state after the last one.
SKIPPED = -8
#: A decided row's hint is its flag; an undecided one's is more by this.
ADD = 4


@dataclass(frozen=True, eq=False)
class Marks:
    """Marks taken apart."""

    marks: Ints  # [n], none below 0
    follows: Ints = field(init=False)
    flags: Ints = field(init=False)
    next_flags: Ints = field(init=False)
    first: Bools = field(init=False)
    lengths: Ints = field(init=False)  # steps of the episode; 0 if it goes on

    def __post_init__(self) -> None:
        marks = self.marks
        for name, by, below in (
            ("follows", 1, BY_FLAG),
            ("flags", BY_FLAG, BY_NEXT_FLAG),
            ("next_flags", BY_NEXT_FLAG, BY_FIRST),
            ("first", BY_FIRST, BY_LENGTH),
            ("lengths", BY_LENGTH, np.iinfo(np.int64).max),
        ):
            part = marks % below // by
            object.__setattr__(self, name, part == 1 if name == "first" else part)


@dataclass(frozen=True)
class Place:
    """Where a row stands in its episode."""

    sound: nw.Expr  # whether the row beside it is the next one of its episode
    ends: nw.Expr  # whether it is the last one
    first: nw.Expr
    count: nw.Expr  # steps of the episode up to it
    wrong: nw.Expr  # the mark of what must not be, if it is neither


def is_key(name: str) -> bool:
    """Return whether a column of pairs is a value or a mark: what makes pairs different."""
    return name == MARK or (name[0] in "vn" and name[1:].isdigit())


def marked(paired: Frame, place: Place, also: list[str]) -> Frame:
    """Return values, the next row's values and a mark; rows that are final states are SKIPPED.

    Most rows are a step like any other: the first branch tells them, and engines do not look
    further. So what a mark is made of stands in it, and is not computed before.
    """
    values = [name for name in paired.collect_schema() if is_key(name)]
    hint, then = nw.col(HINT), nw.col(NEXT_HINT)
    first = nw.when(place.first).then(nw.lit(BY_FIRST)).otherwise(nw.lit(0))
    step = hint * BY_FLAG + first
    ends = step + place.count * BY_LENGTH
    lone = nw.when(place.first).then(nw.lit(NO_STEP)).otherwise(nw.lit(SKIPPED))
    last = nw.when(hint >= ADD).then(lone).otherwise(ends + NOTHING)
    mark = nw.when(place.ends).then(last).otherwise(place.wrong)
    then_state = ends + (then - ADD) * BY_NEXT_FLAG + STATE
    mark = nw.when(place.sound & (hint < ADD)).then(then_state).otherwise(mark)
    mark = nw.when(place.sound & (then < ADD) & (hint < ADD)).then(step).otherwise(mark)
    mark = nw.when(place.sound & (then < ADD) & (hint == NO)).then(first).otherwise(mark)
    return paired.select(
        *values,
        mark.cast(nw.Int64).alias(MARK),
        *also,
    )
