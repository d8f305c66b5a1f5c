"""What the doctor says: something found, and what to do about it."""

from dataclasses import dataclass
from typing import Literal

#: An error: nothing can be learned. A warning: what is learned may be wrong. A note: good to know.
Level = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """Something found in a log."""

    level: Level
    about: str  # in a word: missing, coverage, markov, …
    found: str
    advice: str

    def __str__(self) -> str:
        return f"{self.level}: {self.found}. {self.advice}."
