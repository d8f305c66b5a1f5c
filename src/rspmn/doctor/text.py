"""A diagnosis as text."""

from collections.abc import Iterator

from rspmn.display import cell_text, shortened, table_lines
from rspmn.doctor.examine import Diagnosis
from rspmn.schema import Schema

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
