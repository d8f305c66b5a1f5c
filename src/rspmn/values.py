"""The values that variables take, as they stand in the user's data.

A network holds values, not codes: `Max("action", ("left", "right"), …)`. Codes are an
affair of the arrays (`rspmn.data.columns`) and are made and undone at their border.
"""

import math
import sys
from collections.abc import Container, Mapping
from enum import Enum
from typing import Any, Final, Literal, TypeGuard

import numpy as np

from rspmn.errors import RspmnError


class Mark(Enum):
    """Values that stand in no table: the types of `END` and `UNKNOWN`."""

    END = "END"
    UNKNOWN = "UNKNOWN"

    def __repr__(self) -> str:
        return self.value

    def __str__(self) -> str:
        return self.value


#: What every variable is once an episode is over. It is a value like any other: the END
#: interface node gives it probability 1, every other node probability 0.
END: Final = Mark.END
#: What a decision is where none was ever tried, and every variable of a step of which nothing is
#: known. Nobody can decide it, so what lies below it is worth nothing, whatever the horizon.
UNKNOWN: Final = Mark.UNKNOWN

#: The most steps that any log has, and the least share of a step; and the largest utility. So sums
#: over long horizons, and squares of utilities times steps, are finite.
MOST_STEPS, LEAST_STEPS, LARGEST_UTILITY = 2.0**53, 1e-100, 1e100

type_names = "a string, int, float, bool or END"
Value = str | int | float | bool | Literal[Mark.END, Mark.UNKNOWN]
PLAIN: Final = (str, int, float, Mark)
FLOATS: Final = (float, np.floating)


def as_value(raw: object, where: str, error: type[RspmnError] = RspmnError) -> Value:
    """Turn a Python or numpy scalar into a plain value, or say why it is none.

    >>> as_value(np.int64(3), "x")
    3
    """
    if type(raw) is int and -(2**63) < raw < 2**63:  # most of them
        return raw
    plain = raw.item() if isinstance(raw, np.generic) else raw
    if isinstance(plain, float) and not math.isfinite(plain):
        raise error(f"{where}: expected a finite number, found {plain}")
    if isinstance(plain, int) and abs(plain) > sys.float_info.max:
        raise error(f"{where}: expected a number of at most 1e308, found a larger one")
    if isinstance(plain, str) and not is_text(plain):
        raise error(f"{where}: expected text, found {plain!r}, which cannot be encoded")
    if isinstance(plain, PLAIN):
        return plain
    raise error(f"{where}: expected {type_names}, found {plain!r} ({type(plain).__name__})")


def is_missing(raw: object) -> bool:
    """Tell None, NaN and pandas' NA and NaT from values.

    >>> is_missing(np.float32("nan")), is_missing(0)
    (True, False)
    """
    if isinstance(raw, FLOATS):
        return bool(raw != raw)
    return raw is None or type(raw).__name__ in ("NAType", "NaTType")


def is_name(found: object) -> bool:
    """Tell a name: text that is not empty."""
    return is_string(found) and found != ""


def unused(name: str, taken: Container[str]) -> str:
    """Return a name for a column beside others: with `_` behind it as long as it is taken.

    >>> unused("value", ["x", "value"])
    'value_'
    """
    while name in taken:
        name += "_"
    return name


def is_string(found: object) -> bool:
    """Tell text from all other objects."""
    return isinstance(found, str) and is_text(found)


def is_number(found: object) -> TypeGuard[float]:
    """Tell numbers, of Python or numpy, from truth values and all other objects."""
    return isinstance(found, int | float | np.integer | np.floating) and not isinstance(found, bool)


def is_text(text: str) -> bool:
    """Tell text from strings with lone surrogates, which cannot be written to a file."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def show(value: Value) -> str:
    """Write a value for a person: short floats, bare strings.

    >>> show(0.1 + 0.2), show("left"), show(True)
    ('0.3', 'left', 'True')
    """
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def short(number: float) -> str:
    """Write a number for a person: four digits, and all of those before the point.

    >>> short(41.99478), short(12345.6), short(-0.000123456), short(float("nan"))
    ('41.99', '12346', '-0.0001235', '')
    """
    if math.isnan(number):
        return ""
    return f"{number:.0f}" if 1000 <= abs(number) < 1e15 else f"{number:.4g}"


def show_steps(steps: float) -> str:
    """Write a number of logged steps for a person.

    A step near the border of soft boxes is shared by them, so numbers may not be whole.

    >>> show_steps(1.0), show_steps(85.0588), show_steps(0.3)
    ('1 logged step', 'about 85 logged steps', 'less than 1 logged step')
    """
    whole = round(steps)
    about = "" if abs(steps - whole) < 1e-6 * max(1.0, steps) else "about "
    if steps < 1 and about:
        return "less than 1 logged step"
    return f"{about}{whole} logged step{'' if whole == 1 else 's'}"


def plain(value: Any) -> Any:
    """Return a value as JSON has it: no NaN, no marks, no arrays.

    >>> plain({"x": float("nan"), "y": (1, np.float64(2.5))})
    {'x': None, 'y': [1, 2.5]}
    """
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, Mark):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def rounded(number: float) -> float | None:
    """Return a number to seven significant digits; None if it is not finite.

    >>> rounded(1 / 3), rounded(2.0), rounded(float("inf"))
    (0.3333333, 2.0, None)
    """
    return float(f"{number:.7g}") if math.isfinite(number) else None
