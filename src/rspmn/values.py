"""The values that variables take, as they stand in the user's data.

A network holds values, not codes: `Max("action", ("left", "right"), …)`. Codes are an
affair of the arrays (`rspmn.data.coding`) and are made and undone at their border.
"""

import math
from enum import Enum
from typing import Final, Literal

import numpy as np

from rspmn.errors import RspmnError

__all__ = ["END", "End", "Value", "as_value", "show"]


class End(Enum):
    """The type of `END`."""

    END = "END"

    def __repr__(self) -> str:
        return "END"


#: What every variable is once an episode is over. It is a value like any other: the END
#: interface node gives it probability 1, every other node probability 0.
END: Final = End.END

type_names = "a string, int, float, bool or END"
Value = str | int | float | bool | Literal[End.END]


def as_value(raw: object, where: str) -> Value:
    """Turn a Python or numpy scalar into a plain value, or say why it is none.

    >>> as_value(np.int64(3), "x")
    3
    """
    plain = raw.item() if isinstance(raw, np.generic) else raw
    if isinstance(plain, float) and not math.isfinite(plain):
        raise RspmnError(f"{where}: expected a finite number, found {plain}")
    if isinstance(plain, str | int | float | End):
        return plain
    raise RspmnError(f"{where}: expected {type_names}, found {plain!r} ({type(plain).__name__})")


def show(value: Value) -> str:
    """Write a value for a person: short floats, bare strings.

    >>> show(0.1 + 0.2), show("left"), show(True)
    ('0.3', 'left', 'True')
    """
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value.value if isinstance(value, End) else value)
