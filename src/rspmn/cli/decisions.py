"""Commands about tables of single decisions: what to do in each row, likelihoods, a survey."""

import json
from typing import Any

import numpy as np

from rspmn.cli.console import ExitCode, print_table
from rspmn.cli.framework import Arguments
from rspmn.cli.logs import write_table
from rspmn.cli.queries import options
from rspmn.data.tables import as_table
from rspmn.doctor import examine_decisions
from rspmn.errors import EvidenceError
from rspmn.model import RSPMN
from rspmn.model_file import load
from rspmn.schema import Schema
from rspmn.spmn import SPMN


def decide_table(arguments: Arguments) -> int:
    """Write or print what to do in each row of a table."""
    if arguments.state is not None:
        raise EvidenceError("--table and --state do not go together: pass one of them")
    model, table = load(arguments.model), as_table(arguments.table)
    found: dict[str, Any]
    if isinstance(model, SPMN):
        options(model, arguments)  # refuses those of recurrent models
        found = dict(model.decide(table))
    else:
        found = _recurrent(model, table, arguments)
    found = {name: np.asarray(column).tolist() for name, column in found.items()}
    if arguments.output:
        write_table(arguments.output, found)
        if not arguments.json and not arguments.quiet:
            print(f"{arguments.output}: {table.rows} rows")
    if arguments.json:
        rows = zip(*found.values(), strict=True)
        print(json.dumps([dict(zip(found, row, strict=True)) for row in rows]))
    elif not arguments.output:
        print_table(found)
    return ExitCode.ANSWERED


def _recurrent(model: RSPMN, table: object, arguments: Arguments) -> dict[str, Any]:
    made = model.policy(**options(model, arguments)).act_many(table)
    return dict(made) if isinstance(made, dict) else {model.schema.decisions[0]: made}


def show_row_likelihoods(model: SPMN, arguments: Arguments) -> None:
    """Print the log-likelihood of the rows of a table."""
    table = as_table(arguments.log)
    found = model.log_likelihood(table)
    impossible = int(np.isneginf(model.log_likelihood(table, smoothed=False)).sum())
    if arguments.output:
        rows = list(range(table.rows))
        write_table(arguments.output, {"row": rows, "loglik": found.tolist()})
    if arguments.json:
        facts = {"rows": table.rows, "mean": float(found.mean()), "unseen": impossible}
        print(json.dumps(facts))
        return
    print(f"log-likelihood {found.mean():.6g} per row, over {table.rows} rows")
    if impossible:
        print(f"{impossible} of them hold something that the model never saw (smoothed)")


def doctor_of_decisions(arguments: Arguments) -> int:
    """Print the contents of a table of single decisions and its problems."""
    if arguments.schema is None:
        raise EvidenceError(
            "--single needs --schema: which columns are known before which decision"
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
