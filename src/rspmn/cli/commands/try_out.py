"""Commands to try things out: domains, generated logs, the paper's tables."""

import os

import click

from rspmn.cli import options
from rspmn.cli.framework import Argument, Option, Section
from rspmn.cli.options import OUTPUT, Number
from rspmn.cli.streams import OutputFile

TRY = Section("Try it out")


@TRY.command(
    "generate.list_domains",
    "list the domains for which logs can be generated",
    "rspmn domains",
)
def _domains() -> list[click.Parameter]:
    return []


@TRY.command(
    "generate.generate",
    "generate a log for a domain",
    "rspmn generate FrozenLake --episodes 300 --schema lake.toml -o lake.csv",
    "rspmn generate Maze --episodes 9 --files 3 -o maze.csv",
)
def _generate() -> list[click.Parameter]:
    return [
        Argument("domain", "name of a domain, see `rspmn domains`"),
        Option("--files", type=int, default=1, metavar="N",
               help="number of files to divide the log into: NAME-0, NAME-1, …"),
        Option("--episodes", type=Number(1), metavar="N",
               help="number of episodes; default: that of the paper"),
        Option("--steps", type=Number(1), metavar="N",
               help="maximum number of steps of an episode; default: that of the paper"),
        options.seed("random seed, default 0; the same seed gives the same file"),
        Option(
            "--layout", type=click.Choice(["flags", "final", "padded", "terminal_row"]),
            default="flags",
            help="how the end of an episode is logged. flags (default): a column terminated; "
            "final: also a row with the state after the last step; padded: episodes of equal "
            "length that stay in the terminal state; terminal_row: one row in the terminal state",
        ),
        Option("--wide", is_flag=True, help="one row per episode, as in the paper"),
        Option("--schema", type=OutputFile(".toml"), metavar="FILE",
               help="a .toml file to write the schema to", section=OUTPUT),
        options.output(".csv", "a .csv, .tsv, .parquet or .jsonl file to write", required=True),
    ]  # fmt: skip


@TRY.command(
    "policy.sample",
    "sample episodes from a model",
    "rspmn sample lake.json --episodes 50 --horizon 100 --best -o simulated.csv",
)
def _sample() -> list[click.Parameter]:
    return [
        options.model(),
        Option("--episodes", type=Number(1), default=100, metavar="N",
               help="number of episodes, default 100"),
        Option("--horizon", type=Number(1), required=True, metavar="STEPS",
               help="maximum number of steps of an episode"),
        Option("--best", is_flag=True,
               help="take the best decisions; default: uniformly random ones"),
        *options.optimum(),
        options.seed(),
        options.output(".csv", "a .csv file to write", required=True),
    ]  # fmt: skip


@TRY.command(
    "generate.reproduce",
    "reproduce the paper's tables and compare with the exact optimum",
    "rspmn reproduce --domains GridUniverse --scale 0.01 --seeds 1 -o reproduction",
)
def _reproduce() -> list[click.Parameter]:
    return [
        Option("--domains", several=".+", metavar="DOMAIN",
               help="domains, default: all seven of the paper"),
        Option("--scale", type=Number(0, whole=False), default=1.0, metavar="FACTOR",
               help="factor for the number of episodes, default 1"),
        Option("--seeds", type=Number(1), default=5, metavar="N",
               help="number of logs for each cell, default 5"),
        Option("--baselines", several=".+", default=["table", "clone", "paper"], metavar="NAME",
               help="table, clone, paper (the paper's learner), spmn (of whole sequences), bcq "
               "(needs d3rlpy) or none; default: table clone paper"),
        Option("--jobs", type=Number(1), default=os.cpu_count() or 1, metavar="N",
               help="number of processes, default: all cores"),
        Option("-o", "--output", required=True, metavar="FOLDER", section=OUTPUT,
               help="a folder to write to; running the same command again resumes"),
    ]  # fmt: skip


@TRY.command(
    "completion.completion",
    "print a script for shell completion",
    'eval "$(rspmn completion bash)"  # in ~/.bashrc',
    "rspmn completion fish > ~/.config/fish/completions/rspmn.fish",
)
def _completion() -> list[click.Parameter]:
    return [Argument("shell", "bash, zsh or fish", type=click.Choice(["bash", "zsh", "fish"]))]
