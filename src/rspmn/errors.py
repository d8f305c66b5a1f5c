"""What goes wrong, by who has to mend it.

Every message says which object, what was expected, what was found and what to do
next. All of them are `ValueError`, so a caller who does not care need not import them.
"""

import re
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

#: The most characters of a message, and of what is quoted in one.
LONGEST, LONGEST_QUOTE = 300, 60


class RspmnError(ValueError):
    """The base of every error that rspmn raises on purpose.

    Its message is one line of at most 300 characters, whatever names and values are quoted in it:
    long ones are shortened, and characters that move the cursor are written as Python escapes.

    >>> print(RspmnError(f"no column {'x' * 1000!r}"))
    no column 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…xxxxxxxxxxxxxx'
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(one_line(message))


class SchemaError(RspmnError):
    """The schema contradicts itself."""


class DataError(RspmnError):
    """The data do not fit the schema, or leave open what must be known."""


class CircuitError(RspmnError):
    """A node, network or model that would be meaningless."""


class EvidenceError(RspmnError):
    """A query names something that the model does not have."""


class ConvergenceError(RspmnError):
    """Values without a horizon that do not settle."""


class ModelFileError(RspmnError):
    """A model file that cannot be read, or holds a model that is not valid."""


class MissingExtraError(RspmnError, ImportError):
    """A query that needs an optional package."""


def one_line(message: str) -> str:
    r"""Return a message as one line of at most `LONGEST` characters.

    >>> one_line("no column 'a' in the file a\nb.csv")
    "no column 'a' in the file a\\nb.csv"
    """
    if len(message) > LONGEST:
        message = _QUOTED.sub(lambda quoted: _shortened(quoted[0], LONGEST_QUOTE), message)
    if not message.isprintable():
        shown = message[: 2 * LONGEST] + message[2 * LONGEST :][-2 * LONGEST :]
        message = "".join(c if _is_shown(c) else repr(c)[1:-1] for c in shown)
    return _shortened(message, LONGEST)


#: A string as Python quotes it, too long for a message.
_QUOTED = re.compile(r"'(?:[^'\\]|\\.){60,}'|\"(?:[^\"\\]|\\.){60,}\"", re.DOTALL)


def _is_shown(character: str) -> bool:
    return unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def _shortened(text: str, most: int) -> str:
    """Return the start and the end of a text that is too long."""
    if len(text) <= most:
        return text
    end = most // 4
    return f"{text[: most - end - 1]}…{text[-end:]}"


def did_you_mean(name: object, valid: Iterable[object]) -> str:
    """Name the valid word nearest to a wrong one, or list them all.

    >>> did_you_mean("utilty", ["order", "decisions", "utility"])
    "did you mean 'utility'?"
    >>> did_you_mean("q", ["x", "y"])
    "expected one of 'x', 'y'"
    """
    words = [str(word) for word in valid]
    short = len(str(name)) <= LONGEST  # matching takes time in proportion to lengths
    near = get_close_matches(str(name), words, n=1) if short else []
    if near:
        return f"did you mean {near[0]!r}?"
    if not words:
        return "there are none"
    return "expected one of " + ", ".join(repr(word) for word in words)


def no_column(what: str, name: str, names: Iterable[str]) -> DataError:
    """Return the error of a table without a column that is asked for."""
    return DataError(f"no {what} {name!r} in the table: {did_you_mean(name, names)}")


def no_rows() -> DataError:
    """Return the error of a table without rows."""
    return DataError("the table has no rows")
