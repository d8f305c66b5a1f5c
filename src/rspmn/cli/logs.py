"""Commands about a recurrent model and logs: its policy, likelihoods, sampled episodes."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rspmn import export
from rspmn.cli.console import print_table
from rspmn.cli.framework import Arguments
from rspmn.cli.options import log_options
from rspmn.cli.queries import check_ending, honest_line, honest_of, options, print_doubts
from rspmn.data.episodes import Episodes
from rspmn.errors import DataError
from rspmn.files import write_atomically
from rspmn.infer.policy import Policy
from rspmn.model_file import load, load_rspmn
from rspmn.spmn import SPMN
from rspmn.values import plain, short

#: So many notes on where decisions were never taken are printed with a policy.
NOTES = 10


def show_policy(arguments: Arguments) -> None:
    """Write the best decision of every interface node as a table."""
    model = load(arguments.model)
    if isinstance(model, SPMN):
        policy = model.policy()
    else:
        policy = model.policy(**options(model, arguments))
    if arguments.to is not None:
        _write_out(policy, arguments)
        return
    table = policy.table(arguments.t)
    if arguments.output:
        write_table(arguments.output, table)
        if not arguments.json and not arguments.quiet:
            what = "parts" if isinstance(model, SPMN) else "interface nodes"
            print(f"{arguments.output}: {len(table['node'])} {what}")
        if not arguments.json:
            return
    if arguments.json:
        names = list(table)
        rows = zip(*table.values(), strict=True)
        print(json.dumps([dict(zip(names, map(plain, row), strict=True)) for row in rows]))
        return
    table |= {name: [round(steps) for steps in table[name]] for name in ("visits", "steps")}
    if arguments.quiet:
        print_table(table)
        return
    honest = None if policy.allow_untried else honest_of(policy)
    if honest is not None:
        print(f"{honest_line(honest)} from the start; promise (MEU) {short(honest.promise)}")
    print_table(table)
    print_doubts(honest)
    taken = {(name, made) for name in model.schema.decisions for made in table[name]}
    notes = [n for n in model.never_taken if (n.decision, n.value) in taken]
    for never in notes[:NOTES]:
        print(f"{never.decision} = {never.value}: {never}")
    if len(notes) > NOTES:
        print(f"and {len(notes) - NOTES} more; rspmn act says them of a state")


def _write_out(policy: Policy, arguments: Arguments) -> None:
    """Write a policy in a form that needs no rspmn."""
    text = getattr(export, f"to_{arguments.to}")(policy, arguments.t)
    if not arguments.output:
        print(text, end="")
        return
    write_atomically(arguments.output, text.encode())
    if not arguments.quiet:
        print(f"{arguments.output}: the policy, {len(text.splitlines())} lines")


def show_likelihood(arguments: Arguments) -> None:
    """Print the log-likelihood of the episodes of a log, or of the rows of a table."""
    model = load(arguments.model)
    if isinstance(model, SPMN):
        from rspmn.cli.decisions import show_row_likelihoods

        show_row_likelihoods(model, arguments)
        return
    episodes = Episodes.from_log(arguments.log, model.schema, **log_options(arguments))
    found = model.log_likelihood(episodes)
    impossible = int(np.isneginf(model.log_likelihood(episodes, smoothed=False)).sum())
    if arguments.output:
        write_table(arguments.output, {"episode": episodes.ids.tolist(), "loglik": found.tolist()})
    facts = {
        "episodes": len(episodes),
        "mean": float(found.mean()),
        "per_step": float(found.sum() / episodes.num_steps),
        "unseen": impossible,
    }
    if arguments.json:
        print(json.dumps(facts))
        return
    print(
        f"log-likelihood {facts['mean']:.6g} per episode, {facts['per_step']:.6g} per step, over "
        f"{len(episodes)} episodes"
    )
    if impossible:
        print(f"{impossible} of them contain a step that the model never saw (smoothed)")


def sample(arguments: Arguments) -> None:
    """Sample episodes from a model."""
    model = load_rspmn(arguments.model)
    untried = arguments.allow_untried
    best = None
    if arguments.best:
        best = model.policy(**options(model, arguments))
    elif untried:
        raise DataError("--allow-untried is for --best: without it decisions are drawn at random")
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


# ---- what they share -----------------------------------------------------------------


def write_table(path: str, table: Mapping[str, Sequence[Any]]) -> None:
    """Write a table as CSV, whole or not at all."""
    check_ending(path, ".csv")
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(table)
    writer.writerows(
        ["" if value is None else value for value in row]
        for row in zip(*table.values(), strict=True)
    )
    write_atomically(path, text.getvalue().encode())
