"""Commands that learn."""

import argparse
import json
from dataclasses import asdict, replace

from rspmn.data.tables import as_table
from rspmn.learn import LearnConfig, learn_spmn
from rspmn.schema import Schema


def config_of(arguments: argparse.Namespace) -> LearnConfig:
    """Return how to learn, as the arguments say."""
    return replace(
        LearnConfig.paper() if arguments.paper else LearnConfig(),
        max_nodes=arguments.max_nodes,
        max_depth=arguments.max_depth,
        max_seconds=arguments.max_seconds,
    )


def learn_single_shot(arguments: argparse.Namespace) -> None:
    """Learn a model from a table of past decisions and write it."""
    schema = Schema.load(arguments.schema)
    config = config_of(arguments)
    table = as_table(arguments.table)
    model, info = learn_spmn(table, schema, config, arguments.seed, weights=arguments.weights)
    model.save(arguments.output)
    if arguments.json:
        print(json.dumps({"model": arguments.output, "meu": float(model.meu()), **asdict(info)}))
        return
    print(
        f"learned {info.nodes} nodes from {info.rows:g} rows ({info.distinct_rows} distinct) in "
        f"{info.seconds:.2f} s: MEU {float(model.meu()):.6g}"
    )
    if info.stopped_by:
        print(f"stopped early: the limit of {info.stopped_by} was reached")
