"""Codes of pairs of rows: all about a pair except its values, in one integer.

A code says whether a step or only a state follows, what the flags are, whether the row is the first
step and, if it is the last, how many steps there were. Negative codes are faults. So a pair needs
one more key to be grouped by, and faults show in the groups.
"""

from dataclasses import dataclass
from functools import cached_property

import narwhals as nw
import numpy as np

from rspmn.data.sources.engine import Frame
from rspmn.types import Bools, Ints

CODE = "code"
ROW_CODE, NEXT_ROW_CODE = "r", "nr"

#: What follows a row: another step, a row without decisions, no row.
STEP, STATE, NOTHING = 0, 1, 2
#: A terminated flag: no, yes, missing, none of these.
NO, YES, MISSING, INVALID = 0, 1, 2, 3
#: A code: what follows + 3 · flag + 12 · next flag + 48 · is first + 96 · length if last.
BY_FLAG, BY_NEXT_FLAG, BY_FIRST, BY_LENGTH = 3, 12, 48, 96
#: Codes of faults: a missing step, a duplicate time, a missing episode or time; an empty block
#: before a full one, an empty row; an episode without a step; rows that are not in order.
GAP, TIE, NO_KEY, HOLE, EMPTY_ROW, NO_STEP, UNORDERED = -1, -2, -3, -4, -5, -6, -7
#: The code of a row that is not a step, but the state after the last step.
FINAL_STATE = -8
#: The code of a row that is a step is its flag; that of a state is its flag plus this.
STATE_ROW = 4


@dataclass(frozen=True, eq=False)
class PairCodes:
    """The parts of codes."""

    codes: Ints  # [n], none below 0

    @cached_property
    def follows(self) -> Ints:
        """What follows: STEP, STATE or NOTHING."""
        return self.codes % BY_FLAG

    @cached_property
    def flags(self) -> Ints:
        """The terminated flag: NO, YES, MISSING or INVALID."""
        return self.codes % BY_NEXT_FLAG // BY_FLAG

    @cached_property
    def next_flags(self) -> Ints:
        """The flag of the next row."""
        return self.codes % BY_FIRST // BY_NEXT_FLAG

    @cached_property
    def first(self) -> Bools:
        """Whether the row is the first step."""
        return np.asarray(self.codes % BY_LENGTH >= BY_FIRST)

    @cached_property
    def lengths(self) -> Ints:
        """The steps of the episode; 0 if it goes on."""
        return self.codes // BY_LENGTH


@dataclass(frozen=True)
class RowPlace:
    """The place of a row in its episode."""

    sound: nw.Expr  # whether the row beside it is the next one of its episode
    ends: nw.Expr  # whether it is the last one
    first: nw.Expr
    count: nw.Expr  # steps of the episode up to it
    wrong: nw.Expr  # the code of the fault, if it is neither


def is_key(name: str) -> bool:
    """Return whether pairs are grouped by a column: it is a value or the code."""
    return name == CODE or (name[0] in "vn" and name[1:].isdigit())


def coded_pairs(paired: Frame, place: RowPlace, also: list[str]) -> Frame:
    """Return values, the next row's values, the code and other columns of pairs.

    Most rows are steps followed by steps. The outermost case is theirs, and engines do not evaluate
    the others for them.
    """
    values = [name for name in paired.collect_schema() if is_key(name)]
    row, then = nw.col(ROW_CODE), nw.col(NEXT_ROW_CODE)
    first = nw.when(place.first).then(nw.lit(BY_FIRST)).otherwise(nw.lit(0))
    step = row * BY_FLAG + first
    ends = step + place.count * BY_LENGTH
    lone = nw.when(place.first).then(nw.lit(NO_STEP)).otherwise(nw.lit(FINAL_STATE))
    last = nw.when(row >= STATE_ROW).then(lone).otherwise(ends + NOTHING)
    code = nw.when(place.ends).then(last).otherwise(place.wrong)
    then_state = ends + (then - STATE_ROW) * BY_NEXT_FLAG + STATE
    code = nw.when(place.sound & (row < STATE_ROW)).then(then_state).otherwise(code)
    code = nw.when(place.sound & (then < STATE_ROW) & (row < STATE_ROW)).then(step).otherwise(code)
    code = nw.when(place.sound & (then < STATE_ROW) & (row == NO)).then(first).otherwise(code)
    return paired.select(*values, code.cast(nw.Int64).alias(CODE), *also)
