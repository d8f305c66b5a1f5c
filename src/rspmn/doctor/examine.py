"""The examination of a log: everything that is checked, and what was found."""

from collections.abc import Iterator
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
from rspmn.display import cell_text, shortened, table_lines, text_html
from rspmn.doctor.findings import Finding, column_findings
from rspmn.doctor.law_or_habit import habit_findings
from rspmn.doctor.markov import MarkovTest, markov_test
from rspmn.doctor.proposal import propose, survey_log
from rspmn.doctor.step_findings import (
    Coverage,
    balance_of,
    coverage_of,
    far_findings,
    leak_findings,
    spelling_findings,
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
            found.markov = markov_test(_sample(opened, found), [*found.aside])
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
    schema.check_decides()
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
    unknown = (windows.followed == Followed.UNKNOWN) | windows.went_on
    found.steps_without_successor = int(windows.counts[unknown].sum())
    found.balance = balance_of(windows)
    config = LearnConfig()
    two = wrap(windows, config)
    if (windows.followed != Followed.UNKNOWN).any():
        irrelevant = irrelevant_variables(two, config)
        found.aside = irrelevant.aside
        found.findings += habit_findings(two, irrelevant)
    matters = without_variables(windows, [*found.aside])  # states differ by nothing else
    found.coverage = coverage_of(matters)
    found.findings += step_findings(matters, found.coverage)
    found.findings += spelling_findings(windows)
    found.findings += leak_findings(windows)
    found.findings += far_findings(windows)


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


#: Names of columns are shortened to this.
LONGEST_NAME = 30


def diagnosis_lines(found: Diagnosis, width: int | None = None) -> list[str]:
    """Return what a log contains and what may be wrong with it, its tables of some width."""
    return [*_contents(found), "", *_columns(found, width), *_steps(found), "", *_findings(found)]


def _contents(found: Diagnosis) -> Iterator[str]:
    stored = sum(not column.is_computed for column in found.survey.columns)
    name = f"{found.log}: " if found.log else ""
    yield f"{name}{found.survey.rows} rows of {stored} columns"
    if found.is_proposed:
        yield "no schema was given: one was inferred from the columns; `rspmn schema` writes it"
    if found.episodes:
        lengths = ", ".join(f"{name} {value:g}" for name, value in found.lengths.items())
        ends = ", ".join(f"{number} {how}" for how, number in found.endings.items())
        yield f"{found.steps} steps ({found.windows} distinct) in {found.episodes} episodes"
        yield f"lengths: {lengths}"
        yield f"ended: {ends}"


def _columns(found: Diagnosis, width: int | None) -> list[str]:
    columns, roles, kinds = found.survey.columns, _roles(found.schema), found.schema.kinds
    return table_lines({
        "column": [shortened(column.name, LONGEST_NAME) for column in columns],
        "role": [roles.get(column.name, "") for column in columns],
        "kind": [str(kinds.get(c.name) or c.kind or c.stored) for c in columns],
        "values": [column.distinct for column in columns],
        "missing": [column.missing for column in columns],
        "min": [column.least for column in columns],
        "max": [column.most for column in columns],
        "examples": [", ".join(map(cell_text, column.examples)) for column in columns],
    }, width)  # fmt: skip


def _steps(found: Diagnosis) -> Iterator[str]:
    for name, counts in found.balance.items():
        total = max(1, sum(counts.values()))
        shares = ", ".join(f"{value} {n / total:.1%}" for value, n in list(counts.items())[:12])
        yield f"\n{name}: {shares}"
    if found.coverage is not None:
        seen = found.coverage
        yield (
            f"\ncoverage: {seen.states} states, {seen.choices} choices; {seen.pairs} of "
            f"{seen.states * seen.choices} pairs were tried; "
            f"{seen.steps_in_fully_tried:.1%} of steps are in states where all choices were"
        )
    if found.markov is not None and not found.markov.not_tested:
        verdict = "does not hold" if found.markov.dependences else "no evidence against it"
        looked_at = f"{found.markov.steps} steps, {found.markov.tests} tests"
        yield f"Markov property: {verdict} ({looked_at})"
    if found.duplicates:
        yield f"{found.duplicates} rows have the same episode and time as another row"


def _findings(found: Diagnosis) -> list[str]:
    return [str(finding) for finding in found.findings] or ["no problems found"]


def _roles(schema: Schema) -> dict[str | None, str]:
    """Return what each column of a log is used for."""
    roles: dict[str | None, str] = {schema.utility: "utility"}
    roles |= dict.fromkeys(schema.decisions, "decision")
    roles |= dict.fromkeys(schema.state_variables, "state")
    if not schema.log.wide:
        roles |= {schema.log.episode: "episode", schema.log.time: "time", schema.log.flag: "end"}
    return roles
