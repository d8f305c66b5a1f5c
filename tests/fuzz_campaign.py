"""Campaigns of mutated model files: each is refused in a sentence, or answers every question.

`python tests/fuzz_campaign.py --mutants 20000 --seed 3 --questions 27` prints what it found as
JSON. Mutant k of a seed is always the same, however many others there are: `--only K` makes it
alone, and `--write FILE` keeps it.
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
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from model_mutants import Seed
from model_questions import QUESTIONS, Asked, check_refusal
from model_seeds import seed_content, seed_paths
from rspmn import load
from rspmn.errors import ModelFileError, RspmnError

#: What a mutant may take: seconds of CPU to load or for a question, and bytes beyond the start.
SECONDS, BYTES = 5.0, 2**30


class TooSlowError(BaseException):
    """Raised where a mutant takes too long; the library does not catch it."""


@dataclass
class Found:
    """What a campaign found."""

    mutants: int = 0
    refused: int = 0
    answered: int = 0  # loaded, and all questions that were asked had an answer
    slowest: float = 0.0
    questions: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {**vars(self), "questions": dict(self.questions)}


class Campaign:
    """Mutants of all seeds, numbered; `questions` of all are asked of each that loads, in turn."""

    def __init__(self, seed: int, questions: int) -> None:
        self.seed, self.questions, self.found = seed, questions, Found()
        self.names = [path.name for path in seed_paths()]
        self.seeds = [Seed(seed_content(path)) for path in seed_paths()]
        self.folder = Path(tempfile.mkdtemp(prefix="mutants"))

    def content(self, number: int) -> bytes:
        """Return a mutant."""
        rng = Random(f"{self.seed}/{number}")
        return self.seeds[number % len(self.seeds)].mutant(self.seeds, rng)

    def judge(self, number: int) -> None:
        """Load a mutant and ask it some questions."""
        path = self.folder / "mutant.json"
        path.write_bytes(self.content(number))
        self.found.mutants += 1
        doing = "load"
        began = time.process_time()
        try:
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            try:
                asked = Asked(load(path), self.folder)
            except ModelFileError as error:
                check_refusal(error)
                self.found.refused += 1
                return
            for k in range(self.questions):
                question = QUESTIONS[(self.found.answered * self.questions + k) % len(QUESTIONS)]
                doing = question.__name__
                signal.setitimer(signal.ITIMER_PROF, SECONDS)
                began = self._took(began)
                try:
                    question(asked)
                    self.found.questions[doing] += 1
                except RspmnError as error:
                    check_refusal(error)
                    self.found.questions[doing] += 1
            self.found.answered += 1
        except (Exception, TooSlowError) as error:
            self._fail(number, doing, error)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            self._took(began)

    def _took(self, began: float) -> float:
        now = time.process_time()
        self.found.slowest = max(self.found.slowest, now - began)
        return now

    def _fail(self, number: int, doing: str, error: BaseException) -> None:
        where = traceback.extract_tb(error.__traceback__)[-1]
        failure = {
            "number": number, "seed": self.names[number % len(self.names)], "doing": doing,
            "error": f"{type(error).__name__}: {error}"[:300],
            "where": f"{Path(where.filename).name}:{where.lineno}",
        }  # fmt: skip
        print(failure, file=sys.stderr, flush=True)
        trace = "".join(traceback.format_exception(error))[-6000:]
        self.found.failures.append({**failure, "trace": trace})


def limit_memory() -> None:
    """Let this process take no more than `BYTES` from now on."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + BYTES, resource.RLIM_INFINITY))


def _too_slow(_: int, __: FrameType | None) -> None:
    raise TooSlowError(f"more than {SECONDS} s")


def main(arguments: list[str] | None = None) -> None:
    """Run a campaign and print what it found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mutants", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--questions", type=int, default=len(QUESTIONS))
    parser.add_argument("--only", type=int)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args(arguments)
    warnings.simplefilter("error")
    signal.signal(signal.SIGPROF, _too_slow)
    campaign = Campaign(given.seed, given.questions)
    limit_memory()
    numbers = range(given.first, given.first + given.mutants)
    for number in numbers if given.only is None else [given.only]:
        campaign.judge(number)
        if given.write:
            given.write.write_bytes(campaign.content(number))
    json.dump(campaign.found.plain(), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
