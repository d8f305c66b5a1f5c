"""Campaigns of mutated model files: each is refused in a sentence, or answers every question.

`python tests/fuzz_campaign.py --mutants 20000 --seed 3` prints what it found as JSON. Mutant k of a
seed is always the same, however many others there are: `--first K --mutants 1` makes it alone.
`--every-number` draws none: each number of each model is made each of the extreme ones, in turn.
"""

import argparse
import json
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from model_mutants import Seed, with_extreme_numbers
from model_questions import QUESTIONS, Asked, Question, check_refusal
from model_seeds import seed_content, seed_paths
from rspmn import load
from rspmn.errors import ModelFileError, RspmnError

#: What a mutant may take: seconds of CPU to load or for a question, and bytes beyond the start.
SECONDS, BYTES = 5.0, 2**30


class TooSlowError(BaseException):
    """Raised where a mutant takes too long; the library does not catch it."""


def judged(path: Path, questions: Sequence[Question]) -> Iterator[str]:
    """Load a file and ask it questions: yield what comes next, and at last what was found.

    The last word is "refused" or "answered". What is neither an answer nor a clear refusal is
    raised.
    """
    yield "load"
    try:
        asked = Asked(load(path), path.parent)
    except ModelFileError as error:
        check_refusal(error)
        yield "refused"
        return
    for question in questions:
        yield question.__name__
        try:
            question(asked)
        except RspmnError as error:
            check_refusal(error)
    yield "answered"


@dataclass
class Found:
    """What a campaign found."""

    mutants: int = 0
    refused: int = 0
    answered: int = 0
    slowest: float = 0.0  # seconds of CPU of a load or a question
    seconds: float = 0.0  # of all
    questions: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)


#: Mutants of all seeds, numbered: the model that one is made from, and its content.
Mutants = Callable[[int], tuple[str, bytes]]


def drawn_mutants(seed: int) -> Mutants:
    """Return mutants that are drawn, of one model after the other."""
    names = [path.name for path in seed_paths()]
    seeds = [Seed(seed_content(path)) for path in seed_paths()]

    def mutant(number: int) -> tuple[str, bytes]:
        k = number % len(seeds)
        return names[k], seeds[k].mutant(seeds, Random(f"{seed}/{number}"))

    return mutant


def extreme_mutants() -> tuple[Mutants, int]:
    """Return mutants with one extreme number, or a list of one, and how many there are."""
    changes = [
        (path.name, seed, change)
        for path in seed_paths()
        for seed in [Seed(seed_content(path))]
        for change in with_extreme_numbers(seed)
    ]

    def mutant(number: int) -> tuple[str, bytes]:
        name, seed, change = changes[number]
        return name, change(seed)

    return mutant, len(changes)


class Campaign:
    """Mutants that are judged. Of one in `apart` of those that load some questions are asked."""

    def __init__(self, mutants: Mutants, questions: int, apart: int) -> None:
        self.mutants, self.questions, self.apart, self.found = mutants, questions, apart, Found()
        self.round = len(seed_paths())
        self.path = Path(tempfile.mkdtemp(prefix="mutants")) / "mutant.json"

    def judge(self, number: int) -> None:
        """Load a mutant and ask it some questions."""
        name, content = self.mutants(number)
        self.path.write_bytes(content)
        few = 0 if number // self.round % self.apart else self.questions
        asked = [QUESTIONS[(number * few + k) % len(QUESTIONS)] for k in range(few)]
        doing, began = "load", time.process_time()
        try:
            for doing in judged(self.path, asked):
                now = time.process_time()
                self.found.slowest, began = max(self.found.slowest, now - began), now
                self.found.questions[doing] += 1
                signal.setitimer(signal.ITIMER_PROF, SECONDS)
        except (Exception, TooSlowError) as error:  # noqa: BLE001  # any other is a failure
            self._fail(number, name, doing, error)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    def _fail(self, number: int, name: str, doing: str, error: BaseException) -> None:
        where = traceback.extract_tb(error.__traceback__)[-1]
        failure = {
            "number": number, "seed": name, "doing": doing,
            "error": f"{type(error).__name__}: {error}"[:300],
            "where": f"{Path(where.filename).name}:{where.lineno}",
        }  # fmt: skip
        sys.stderr.write(f"{failure}\n")
        trace = "".join(traceback.format_exception(error))[-6000:]
        self.found.failures.append({**failure, "trace": trace})

    def run(self, numbers: Sequence[int]) -> dict[str, Any]:
        """Judge some mutants; return what was found as JSON has it."""
        for number in numbers:
            self.judge(number)
        found, asked = self.found, self.found.questions
        found.mutants, found.seconds = len(numbers), time.process_time()
        del asked["load"]
        found.refused, found.answered = asked.pop("refused", 0), asked.pop("answered", 0)
        return {**vars(found), "questions": dict(asked)}


def limit_memory() -> None:
    """Let this process take no more than `BYTES` from now on."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + BYTES, resource.RLIM_INFINITY))


def _too_slow(_: int, __: FrameType | None) -> None:
    raise TooSlowError(f"more than {SECONDS} s")


def main() -> None:
    """Run a campaign and print what it found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mutants", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--questions", type=int, default=len(QUESTIONS))
    parser.add_argument("--apart", type=int, default=1)
    parser.add_argument("--every-number", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("error")
    signal.signal(signal.SIGPROF, _too_slow)
    last = given.first + given.mutants
    if given.every_number:
        mutants, there = extreme_mutants()
        last = min(last, there)
    else:
        mutants = drawn_mutants(given.seed)
    campaign = Campaign(mutants, given.questions, given.apart)
    limit_memory()
    found = campaign.run(range(given.first, last))
    json.dump(found, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
