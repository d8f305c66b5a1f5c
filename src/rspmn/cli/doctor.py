"""Commands that examine a log before anything is learned from it."""

import json
from dataclasses import replace

from rspmn.cli.console import ExitCode, width_of_output
from rspmn.cli.framework import Arguments
from rspmn.cli.options import log_options
from rspmn.data.sources.engine import shown
from rspmn.data.sources.open import open_source
from rspmn.doctor import examine, examine_decisions, propose, survey_log
from rspmn.doctor.examine import diagnosis_lines
from rspmn.errors import EvidenceError
from rspmn.files import write_atomically
from rspmn.log_format import LogFormat
from rspmn.schema import Schema


def doctor(arguments: Arguments) -> int:
    """Print the contents of a log and its problems; return 1 if nothing can be learned from it."""
    if arguments.single:
        return _doctor_of_decisions(arguments)
    with open_source(arguments.log, arguments.memory_limit) as source:
        schema = None if arguments.schema is None else Schema.load(arguments.schema)
        found = examine(source, schema, **log_options(arguments))
    if arguments.json:
        print(json.dumps(found.to_dict(), default=str))
    elif arguments.quiet:
        for finding in found.findings:
            print(finding)
    else:
        lines = diagnosis_lines(replace(found, log=shown(arguments.log)), width_of_output())
        print("\n".join(lines))
    return ExitCode.ANSWERED if found.is_sound else ExitCode.PROBLEMS


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
        write_atomically(arguments.output, found.toml().encode())
        if not arguments.json and not arguments.quiet:
            print(f"{arguments.output}: proposed schema; check it before use")


def _doctor_of_decisions(arguments: Arguments) -> int:
    """Print the contents of a table of single decisions and its problems."""
    if arguments.schema is None:
        raise EvidenceError(
            "--single needs --schema: the columns that are observed before each decision"
        )
    found = examine_decisions(arguments.log, Schema.load(arguments.schema))
    if arguments.json:
        print(json.dumps(found.to_dict(), default=str))
        return ExitCode.ANSWERED if found.is_sound else ExitCode.PROBLEMS
    print(f"{found.rows} rows, {found.contexts} distinct contexts")
    for name, counts in found.balance.items():
        total = max(1, sum(counts.values()))
        shown = ", ".join(f"{value} {n / total:.1%}" for value, n in list(counts.items())[:12])
        print(f"{name}: {shown}")
    print()
    if not found.findings:
        print("no problems found")
    for finding in found.findings:
        print(finding)
    return ExitCode.ANSWERED if found.is_sound else ExitCode.PROBLEMS
