"""Commands from a log to a model: describe it, propose a schema, learn."""

import click

from rspmn.cli import options
from rspmn.cli.framework import Option, Section
from rspmn.cli.options import LEARNING, LOG, Number
from rspmn.cli.streams import InputFile

FROM_LOG = Section("From a log to a model")


@FROM_LOG.command(
    "doctor.doctor",
    "describe a log and report possible problems",
    "rspmn doctor log.csv --schema schema.toml",
    "rspmn doctor oil.csv --single --schema oil.toml",
)
def _doctor() -> list[click.Parameter]:
    return [
        options.log_files(),
        Option("--schema", type=InputFile(), metavar="FILE",
               help="a schema.toml; default: one proposed from the columns"),
        Option("--single", is_flag=True, help="a table of single decisions, one per row"),
        *options.log_format(),
        options.memory_limit(),
    ]  # fmt: skip


@FROM_LOG.command(
    "doctor.propose_schema",
    "propose a schema.toml for a log",
    "rspmn schema log.csv",
    "rspmn schema log.csv -o proposed.toml",
)
def _schema() -> list[click.Parameter]:
    return [
        options.log_files(),
        *options.log_format(),
        options.output(".toml", "the schema.toml to write"),
    ]


@FROM_LOG.command(
    "learn.learn",
    "learn a recurrent model from a log of episodes",
    "rspmn learn log.csv --schema schema.toml -o model.json",
    "rspmn learn 'log*.csv' --schema schema.toml -o model.json --force",
    "cat log.csv | rspmn learn - --schema schema.toml -o model.json.gz",
)
def _learn() -> list[click.Parameter]:
    return [
        options.log_files(),
        *_learning(),
        Option(
            "--successors", type=click.Choice(["factored", "counts"]),
            help="estimate of the next state. factored (default): factors shared by all branches, "
            "refined by counts; counts: counts alone", section=LEARNING,
        ),
        Option("--em-passes", type=Number(0), default=0, metavar="N", section=LEARNING,
               help="additional passes of EM, default 0"),
        Option("--soft-em", is_flag=True, section=LEARNING,
               help="use soft EM instead of hard EM"),
        Option(
            "--time-limit", type=Number(0), metavar="STEPS", section=LOG,
            help="number of steps after which episodes were truncated; default: detected in the "
            "log; 0: none",
        ),
        *options.log_format(),
        options.memory_limit(),
    ]  # fmt: skip


@FROM_LOG.command(
    "learn.learn_single_shot",
    "learn a model from a table of past decisions",
    "rspmn learn-spmn oil.csv --schema oil.toml -o drilling.json",
)
def _learn_spmn() -> list[click.Parameter]:
    return [
        options.file_to_read(
            "table", "a CSV, TSV, Parquet or JSON lines file, one row per decision"
        ),
        Option("--weights", metavar="COLUMN",
               help="column with the number of times that each row occurred"),
        *_learning(),
    ]  # fmt: skip


@FROM_LOG.command(
    "loglik.show_likelihood",
    "log-likelihood of the episodes of a log",
    "rspmn loglik lake.json log.csv",
    "rspmn loglik lake.json log.csv -o each.csv",
)
def _loglik() -> list[click.Parameter]:
    return [
        options.model(),
        options.log_files(),
        *options.log_format(),
        options.output(".csv", "a .csv file to write the log-likelihood of each episode to"),
    ]


def _learning() -> list[click.Parameter]:
    """Return the parameters of all learning."""
    return [
        Option("--schema", type=InputFile(), required=True, metavar="FILE", help="a schema.toml"),
        Option("--paper", is_flag=True, section=LEARNING,
               help="use the paper's settings: RDC and k-means"),
        Option("--keep", multiple=True, metavar="VARIABLE", section=LEARNING,
               help="a variable that matters, whatever the log says; may be repeated"),
        Option("--ignore", multiple=True, metavar="VARIABLE", section=LEARNING,
               help="a variable that does not matter, such as a habit; may be repeated"),
        options.seed(section=LEARNING),
        Option("--max-nodes", type=Number(0), metavar="N", section=LEARNING,
               help="stop learning at this number of nodes"),
        Option("--max-depth", type=Number(0), metavar="N", section=LEARNING,
               help="maximum number of sum nodes on a path"),
        Option("--max-seconds", type=Number(0, whole=False), metavar="SECONDS", section=LEARNING,
               help="stop learning after this number of seconds"),
        options.output(".json", "the model to write, .json or .json.gz", required=True),
    ]  # fmt: skip
