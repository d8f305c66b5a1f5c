"""The command that says how likely a model finds a log, or a table of decisions."""

import json

import numpy as np

from rspmn.cli.framework import Arguments
from rspmn.cli.options import log_options
from rspmn.cli.streams import write_table
from rspmn.data.episodes import Episodes
from rspmn.data.tables import as_table
from rspmn.model_file import load
from rspmn.spmn import SPMN


def show_likelihood(arguments: Arguments) -> None:
    """Print the log-likelihood of the episodes of a log, or of the rows of a table."""
    model = load(arguments.model)
    if isinstance(model, SPMN):
        _show_row_likelihoods(model, arguments)
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
        print(f"{impossible} episodes contain a step that was never observed (smoothed)")


def _show_row_likelihoods(model: SPMN, arguments: Arguments) -> None:
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
        print(f"{impossible} rows contain values that were never observed (smoothed)")
