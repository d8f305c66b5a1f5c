"""Commands that examine a log before anything is learned from it."""

import json

from rspmn.cli.console import ExitCode, cell_text, print_table
from rspmn.cli.framework import Arguments
from rspmn.cli.options import log_options
from rspmn.data.sources.engine import shown
from rspmn.data.sources.open import open_source
from rspmn.doctor import Diagnosis, examine, propose, survey_log
from rspmn.errors import SchemaError
from rspmn.files import write_atomically
from rspmn.log_format import LogFormat
from rspmn.schema import Schema


def doctor(arguments: Arguments) -> int:
    """Print the contents of a log and its problems; return 1 if nothing can be learned from it."""
    if arguments.single:
        from rspmn.cli.decisions import doctor_of_decisions

        return doctor_of_decisions(arguments)
    with open_source(arguments.log, arguments.memory_limit) as source:
        schema = None if arguments.schema is None else Schema.load(arguments.schema)
        found = examine(source, schema, **log_options(arguments))
    if arguments.json:
        print(json.dumps(found.to_dict(), default=str))
    elif arguments.quiet:
        for finding in found.findings:
            print(finding)
    else:
        _print(found, shown(arguments.log), arguments.schema)
    return ExitCode.ANSWERED if found.is_sound else ExitCode.PROBLEMS


def _print(found: Diagnosis, log: str, schema: str | None) -> None:
    columns = found.survey.columns
    stored = sum(not column.is_computed for column in columns)
    print(f"{log}: {found.survey.rows} rows of {stored} columns")
    if schema is None:
        print("no schema was given: one is guessed from the names; `rspmn schema` writes it down")
    if found.episodes:
        lengths = ", ".join(f"{name} {value:g}" for name, value in found.lengths.items())
        ends = ", ".join(f"{number} {how}" for how, number in found.endings.items())
        print(f"{found.steps} steps ({found.windows} distinct) in {found.episodes} episodes")
        print(f"lengths: {lengths}")
        print(f"ended: {ends}")
    print()
    roles = _roles(found.schema)
    print_table({
        "column": [_short(column.name) for column in columns],
        "role": [roles.get(column.name, "") for column in columns],
        "kind": [str(column.kind or column.stored) for column in columns],
        "values": [column.distinct for column in columns],
        "missing": [column.missing for column in columns],
        "least": [column.least for column in columns],
        "most": [column.most for column in columns],
        "such as": [", ".join(map(cell_text, column.examples)) for column in columns],
    })  # fmt: skip
    for name, counts in found.balance.items():
        total = max(1, sum(counts.values()))
        shown = ", ".join(f"{value} {n / total:.1%}" for value, n in list(counts.items())[:12])
        print(f"\n{name}: {shown}")
    if found.coverage is not None:
        seen = found.coverage
        print(
            f"\ncoverage: {seen.states} states, {seen.choices} choices; {seen.pairs} of "
            f"{seen.states * seen.choices} pairs were tried; "
            f"{seen.steps_in_fully_tried:.1%} of steps are in states where all were"
        )
    if found.markov is not None and not found.markov.not_tested:
        verdict = "does not hold" if found.markov.dependences else "no evidence against it"
        looked_at = f"{found.markov.steps} steps, {found.markov.tests} tests"
        print(f"Markov property: {verdict} ({looked_at})")
    if found.duplicates:
        print(f"{found.duplicates} rows have an episode and a time that another row has")
    print()
    if not found.findings:
        print("no problems found")
    for finding in found.findings:
        print(finding)


def _roles(schema: Schema) -> dict[str | None, str]:
    """Return what each column of a log is used for."""
    roles: dict[str | None, str] = {schema.utility: "utility"}
    roles |= dict.fromkeys(schema.decisions, "decision")
    roles |= dict.fromkeys(schema.state_variables, "state")
    if not schema.log.wide:
        roles |= {schema.log.episode: "episode", schema.log.time: "time", schema.log.flag: "end"}
    return roles


def _short(name: str) -> str:
    return name if len(name) <= 30 else f"{name[:29]}…"


def propose_schema(arguments: Arguments) -> None:
    """Propose a schema for a log."""
    with open_source(arguments.log) as source, source.named():
        log = LogFormat().override(**log_options(arguments))
        found = propose(*survey_log(source, log), log)
    if arguments.json:
        print(json.dumps({
            **{n: getattr(found.log, n) if n in found.found else None
               for n in ("episode", "time", "terminated")}, "log": found.log.to_dict(),
            "decisions": found.decisions, "utility": found.utility, "state": found.state,
            "left_out": dict(found.left_out), "kinds": {n: str(k) for n, k in found.kinds},
        }))  # fmt: skip
    elif not arguments.output:
        print(found.toml(), end="")
    if arguments.output:
        try:
            write_atomically(arguments.output, found.toml().encode())
        except OSError as error:
            message = f"{arguments.output}: cannot be written: {error.strerror}"
            raise SchemaError(message) from None
        if not arguments.json and not arguments.quiet:
            print(f"{arguments.output}: a schema to edit")
