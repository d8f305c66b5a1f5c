"""Commands about many states: a policy as a table, what to do in each row, sampled episodes."""

import json
import sys
from dataclasses import replace
from typing import Any

import numpy as np

from rspmn import export
from rspmn.cli.console import ExitCode, print_table
from rspmn.cli.framework import Arguments
from rspmn.cli.queries import (
    honest_line,
    honest_of,
    options,
    policy_of,
    print_choice,
    print_doubts,
)
from rspmn.cli.streams import write_table
from rspmn.data.tables import as_table
from rspmn.errors import DataError, EvidenceError
from rspmn.files import write_atomically
from rspmn.infer.act_many import node_table
from rspmn.infer.policy import Policy
from rspmn.model import RSPMN
from rspmn.model_file import load, load_rspmn
from rspmn.spmn import SPMN
from rspmn.values import UNKNOWN, plain, short

#: So many notes on where decisions were never taken are printed with a policy.
NOTES = 10


def show_policy(arguments: Arguments) -> None:
    """Write the best decision of every interface node as a table."""
    model = load(arguments.model)
    policy = policy_of(model, arguments)
    if arguments.to is not None:
        _write_out(policy, arguments)
        return
    nodes = node_table(policy, arguments.t)
    table = nodes.columns()
    if arguments.output:
        write_table(arguments.output, table)
        if not arguments.json and not arguments.quiet:
            what = "parts" if isinstance(model, SPMN) else "interface nodes"
            print(f"{arguments.output}: {len(nodes.node)} {what}")
        if not arguments.json:
            return
    if arguments.json:
        names = list(table)
        rows = zip(*table.values(), strict=True)
        print(json.dumps([dict(zip(names, map(plain, row), strict=True)) for row in rows]))
        return
    visits, steps = ([round(n) for n in column] for column in (nodes.visits, nodes.steps))
    table = replace(nodes, visits=[*visits], steps=[*steps]).columns()
    if arguments.quiet:
        print_table(table)
        return
    honest = honest_of(policy)
    print_doubts(honest)
    if honest is not None:
        print(f"{honest_line(honest)} from the start; promise {short(honest.promise)}")
    print_table(table)
    print_choice(model, arguments)
    taken = {(name, made) for name, column in nodes.decisions.items() for made in column}
    notes = [n for n in model.never_taken if (n.decision, n.value) in taken]
    for never in notes[:NOTES]:
        print(f"{never.decision} = {never.value}: {never}")
    if len(notes) > NOTES:
        print(f"and {len(notes) - NOTES} more; see rspmn act for a state")


def _write_out(policy: Policy, arguments: Arguments) -> None:
    """Write a policy in a form that needs no rspmn."""
    text = getattr(export, f"to_{arguments.to}")(policy, arguments.t)
    if not arguments.output:
        print(text, end="")
        return
    write_atomically(arguments.output, text.encode())
    if not arguments.quiet:
        print(f"{arguments.output}: the policy, {len(text.splitlines())} lines")


def decide_table(arguments: Arguments) -> int:
    """Write or print what to do in each row of a table."""
    if arguments.state is not None:
        raise EvidenceError("--table and --state cannot be combined")
    if arguments.sure:
        raise EvidenceError("--table and --sure cannot be combined: use --sure with --state")
    model, table = load(arguments.model), as_table(arguments.table)
    found: dict[str, Any]
    if isinstance(model, SPMN):
        options(model, arguments)  # refuses those of recurrent models
        found = dict(model.decide(table))
    else:
        found = _recurrent(model, table, arguments)
    found = {name: np.asarray(column).tolist() for name, column in found.items()}
    unknown = [row for row, made in enumerate(next(iter(found.values()))) if made is UNKNOWN]
    for column in found.values():
        column[:] = [None if value is UNKNOWN else value for value in column]
    if unknown:
        print(f"warning: {len(unknown)} of {table.rows} states were never observed, the first in "
              f"row {unknown[0] + 1}: nothing is decided there", file=sys.stderr)  # fmt: skip
    if arguments.output:
        write_table(arguments.output, found)
        if not arguments.json and not arguments.quiet:
            print(f"{arguments.output}: {table.rows} rows")
    if arguments.json:
        rows = zip(*found.values(), strict=True)
        print(json.dumps([dict(zip(found, row, strict=True)) for row in rows]))
    elif not arguments.output:
        print_table(found)
    return ExitCode.UNSUPPORTED if unknown and len(unknown) == table.rows else ExitCode.ANSWERED


def _recurrent(model: RSPMN, table: object, arguments: Arguments) -> dict[str, Any]:
    names = model.schema.decisions
    otherwise: Any = UNKNOWN if len(names) == 1 else dict.fromkeys(names, UNKNOWN)
    made = model.policy(**options(model, arguments)).act_many(table, otherwise=otherwise)
    return dict(made) if isinstance(made, dict) else {names[0]: made}


def sample(arguments: Arguments) -> None:
    """Sample episodes from a model."""
    model = load_rspmn(arguments.model)
    asked = options(model, arguments)
    default = {"horizon": arguments.horizon, "discount": 1.0, "offer": "expected"}
    for name, value in asked.items() if not arguments.best else ():
        if value != default.get(name):
            raise DataError(f"--{name.replace('_', '-')} needs --best: other decisions are random")
    best = model.policy(**asked) if arguments.best else None
    log = model.sample(arguments.episodes, arguments.horizon, arguments.seed, best)
    table = log.to_long()
    write_table(arguments.output, table)
    returns = np.add.reduceat(log.columns[model.schema.utility].data, log.offsets[:-1])
    facts = {"episodes": len(log), "steps": log.num_steps, "mean_return": float(returns.mean())}
    if arguments.json:
        print(json.dumps({"file": arguments.output, **facts}))
    elif not arguments.quiet:
        print(
            f"{arguments.output}: {len(log)} episodes, {log.num_steps} steps, "
            f"mean return {facts['mean_return']:.6g}"
        )
