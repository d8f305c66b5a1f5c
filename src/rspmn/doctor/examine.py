"""The examination of a log: everything that is checked, and what was found."""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

import narwhals as nw
import numpy as np

from rspmn.data.episodes import Episodes, Followed
from rspmn.data.sources.column_stats import Survey, survey
from rspmn.data.sources.count_windows import MAX_WINDOWS, store_windows
from rspmn.data.sources.engine import Engine
from rspmn.data.sources.engine_columns import stored_columns
from rspmn.data.sources.episode_stats import EpisodeStats, episode_stats
from rspmn.data.sources.open import open_source
from rspmn.data.sources.text_numbers import with_numbers
from rspmn.data.sources.window_groups import Lengths
from rspmn.display import text_html
from rspmn.doctor.findings import Finding, column_findings
from rspmn.doctor.law_or_habit import habit_findings
from rspmn.doctor.markov import MarkovTest, markov_test
from rspmn.doctor.proposal import propose, survey_log
from rspmn.doctor.step_findings import (
    Coverage,
    balance_of,
    coverage_of,
    leak_findings,
    step_findings,
)
from rspmn.errors import DataError
from rspmn.learn.config import LearnConfig
from rspmn.learn.irrelevant import Reason, irrelevant_variables
from rspmn.learn.set_aside import without_variables
from rspmn.learn.two_step import wrap
from rspmn.log_format import SILENT, LogFormat, LogOptions
from rspmn.schema import Schema, schema_of_log

#: The Markov property is tested on at most this many rows: whole episodes, the first by name.
SAMPLE = 200_000


@dataclass
class Diagnosis:
    """The contents of a log, and what was found in it."""

    survey: Survey
    schema: Schema
    findings: list[Finding] = field(default_factory=list)
    steps: int = 0
    windows: int = 0  # distinct
    episodes: int = 0
    lengths: dict[str, float] = field(default_factory=dict)  # shortest, median, mean, longest
    endings: dict[str, int] = field(default_factory=dict)  # of episodes
    steps_without_successor: int = 0
    duplicates: int = 0  # rows of an episode and a time that another row has
    balance: dict[str, dict[str, int]] = field(default_factory=dict)  # of decisions
    aside: dict[str, Reason] = field(
        default_factory=dict
    )  # what nothing depends on, and what it is
    coverage: Coverage | None = None  # of states that differ in what matters
    markov: MarkovTest | None = None
    log: str = ""  # its name
    is_proposed: bool = False  # no schema was given

    def __str__(self) -> str:
        from rspmn.doctor.text import diagnosis_lines

        return "\n".join(diagnosis_lines(self))

    def _repr_html_(self) -> str:
        return text_html(str(self))

    @property
    def is_sound(self) -> bool:
        """Whether something can be learned from the log."""
        return not any(finding.level == "error" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain values."""
        plain = asdict(self)
        plain["schema"] = self.schema.to_dict()
        plain["survey"]["columns"] = [
            {k: str(v) if k == "kind" and v else v for k, v in column.items()}
            for column in plain["survey"]["columns"]
        ]
        return plain


def examine(
    source: object,
    schema: Schema | None = None,
    *,
    memory_limit: str | None = None,
    **options: Unpack[LogOptions],
) -> Diagnosis:
    """Examine a log before learning from it.

    Parameters
    ----------
    source, memory_limit, **options
        As in `rspmn.windows`.
    schema
        The meaning of the columns, and the format of the log. By default, it is inferred from the
        columns' names and values.

    Notes
    -----
    If nothing can be learned from a log, its diagnosis contains an error. A log that cannot be read
    raises a `DataError`.

    Examples
    --------
    >>> from rspmn.envs.frozen_lake import frozen_lake
    >>> log = frozen_lake().generate(500, 8, 0)
    >>> found = examine(log.to_long(), log.schema)
    >>> found.episodes, found.coverage.states, [f.about for f in found.findings]
    (500, 11, ['successors'])
    """
    with open_source(source, memory_limit) as opened:
        with opened.named():
            found, stats = _surveyed(opened, schema, options)
        log = found.schema.log
        if stats is not None:
            used = (log.episode, log.time, log.flag, *found.schema.variables)
            others = stored_columns(opened.names, used)
            found.duplicates = stats.same_time
            found.findings += column_findings(found.survey, found.schema, others, stats)
        try:
            _look_at_steps(found, opened)
            found.markov = markov_test(_sample(opened, found), without=[*found.aside])
            found.findings += found.markov.findings
        except DataError as error:
            advice = "Correct the log, or its format in the schema, and examine it again"
            found.findings.append(Finding("error", "log", str(error).rstrip("."), advice))
    found.is_proposed = schema is None
    if isinstance(source, str | Path):
        found.log = str(source)
    order = {"error": 0, "warning": 1, "note": 2}
    found.findings.sort(key=lambda finding: order[finding.level])
    return found


def _surveyed(
    source: Engine, schema: Schema | None, options: LogOptions
) -> tuple[Diagnosis, EpisodeStats | None]:
    """Return the schema, proposed if none is given, and what is in columns and in episodes."""
    if schema is None:
        log = LogFormat().override(**options)
        columns, stats = survey_log(source, log)
        schema = propose(columns, stats, log).schema
    schema = schema_of_log(schema, options)
    findings = []
    if not schema.log.says_why_episodes_ended(source.names):
        advice = "Declare it; below, all episodes count as truncated"
        findings.append(Finding("error", "ends", SILENT, advice, 'ending = "cut"', "log"))
        schema = schema.with_log(ending="cut")
    log = schema.log
    log.check_names(source.names, schema.variables)
    source = with_numbers(source, log)
    if log.wide:
        return Diagnosis(survey(source), schema, findings), None
    columns = survey(source, schema.variables)
    stats = episode_stats(source, columns, log.episode, log.time, columns.names)
    return Diagnosis(columns, schema, findings), stats


def _look_at_steps(found: Diagnosis, source: Engine) -> None:
    with store_windows(source, found.schema) as stored:
        lengths = stored.lengths
        found.windows = len(stored)
        found.episodes, found.steps = lengths.episodes, lengths.steps
        found.lengths = _summary(lengths)
        found.endings = {
            "terminated": lengths.ended_by(Followed.END),
            "truncated with a final state": lengths.ended_by(Followed.STATE),
            "truncated without one": lengths.ended_by(Followed.UNKNOWN),
        }
        if len(stored) > MAX_WINDOWS:
            found.findings.append(
                Finding(
                    "warning",
                    "cardinality",
                    f"{len(stored)} of {found.steps} steps and successors are distinct: hardly any "
                    "occurs twice",
                    "Learning will sample them; use fewer or coarser state variables",
                )
            )
            return
        windows = stored.read()
    found.windows = len(windows)
    found.steps_without_successor = int(windows.counts[windows.followed == Followed.UNKNOWN].sum())
    found.balance = balance_of(windows)
    config = LearnConfig()
    two = wrap(windows, config)
    if windows.schema.decisions and (windows.followed != Followed.UNKNOWN).any():
        found.aside = irrelevant_variables(two, config)[0]
        found.findings += habit_findings(two, found.aside, config)
    matters = without_variables(windows, [*found.aside])  # states differ by nothing else
    found.coverage = coverage_of(matters)
    found.findings += step_findings(matters, found.coverage)
    found.findings += leak_findings(windows)


def _summary(lengths: Lengths) -> dict[str, float]:
    order = np.argsort(lengths.lengths)
    below = np.cumsum(lengths.counts[order])
    middle = int(np.searchsorted(below, below[-1] / 2))
    return {
        "shortest": int(lengths.lengths.min()),
        "median": int(lengths.lengths[order][middle]),
        "mean": round(lengths.steps / lengths.episodes, 3),
        "longest": int(lengths.lengths.max()),
    }


def _sample(source: Engine, found: Diagnosis) -> Episodes:
    """Read whole episodes, at most SAMPLE rows of them."""
    frame, log = source.frame.select(source.names), found.schema.log
    if log.wide:
        steps = max(1, found.steps // found.episodes)
        frame = frame.head(max(1, SAMPLE // steps))
    elif found.survey.rows > SAMPLE:
        name = log.episode
        kept = max(1, found.episodes * SAMPLE // found.survey.rows)
        first = source.frame.select(name).unique().sort(name).head(kept)
        last = source.read(first.select(nw.col(name).max())).cells(name).present.tolist()[0]
        frame = frame.filter(nw.col(name) <= last)
    return Episodes.from_log(replace(source, frame=frame), found.schema)
