"""All commands: their sections, functions, examples and parameters.

To add one, write its function in a module of this package, its parameters below, and an entry in
`COMMANDS`. Nothing heavy is imported here: `rspmn --help` is quick.
"""

import os

import click

from rspmn.cli import options
from rspmn.cli.framework import Argument, DeclaredCommand, Option
from rspmn.cli.options import LEARNING, LOG, OUTPUT, Number
from rspmn.cli.streams import InputFile, OutputFile


def check() -> list[click.Parameter]:
    """Parameters of `check`."""
    return [options.file_to_read("file", "a model file, or a schema ending in .toml")]


def info() -> list[click.Parameter]:
    """Parameters of `info`."""
    return [options.model()]


def meu() -> list[click.Parameter]:
    """Parameters of `meu`."""
    return [options.model(), *options.question()]


def act() -> list[click.Parameter]:
    """Parameters of `act`."""
    return [
        options.model(),
        Option("--table", type=InputFile(), metavar="FILE",
               help="a file of states: what to do in each row; - is standard input"),
        Option("--sure", is_flag=True,
               help="also print how sure it is: 90 % intervals, and how probably each action is "
               "best"),
        *options.question(),
        options.output(".csv", "a .csv file to write what --table asks for"),
    ]  # fmt: skip


def explain() -> list[click.Parameter]:
    """Parameters of `explain`."""
    return [
        options.model(),
        *options.question(),
        options.time_step(),
        options.log_files_option(
            "files of the log: also show the logged steps nearest to the state", required=False
        ),
        options.output(".svg", "a .svg or .png to draw what the actions are worth"),
    ]


def returns() -> list[click.Parameter]:
    """Parameters of `returns`."""
    return [
        options.model(),
        *options.question(),
        options.time_step(),
        Option("--tail", type=Number(0, 1, whole=False), metavar="SHARE",
               help="also the policy whose worst share of returns has the highest mean"),
    ]  # fmt: skip


def information() -> list[click.Parameter]:
    """Parameters of `information`."""
    return [
        options.model(),
        Option("--observe", several=".+", metavar="NAME",
               help="variables, each observed alone; default: all that are not in --state"),
        *options.question(),
        options.time_step(),
    ]  # fmt: skip


def sensitivity() -> list[click.Parameter]:
    """Parameters of `sensitivity`."""
    return [
        options.model(),
        *options.question(),
        options.time_step(),
        Option("--event", several=r"[^=]+=.*", metavar="NAME=VALUE",
               help="what may follow, as in --event cell=14; default: each next interface node"),
        Option("--top", type=Number(1), default=10, metavar="N",
               help="number of thresholds to list, the nearest first, default 10"),
    ]  # fmt: skip


def report() -> list[click.Parameter]:
    """Parameters of `report`."""
    return [
        options.model(),
        options.log_files_option(
            "files of the log: also compare the policy with what they do", required=False
        ),
        *options.log_format(),
        options.horizon(),
        options.discount(),
        Option("--title", help="title of the page; default: the name of the model's file"),
        Option("--most-nodes", type=Number(1), default=1000, metavar="N",
               help="interface nodes in the page, the most visited; default 1000"),
        options.output(".html", "the page to write", required=True),
    ]  # fmt: skip


def serve() -> list[click.Parameter]:
    """Parameters of `serve`."""
    return [
        Argument("models", "model files, or NAME=FILE", nargs=-1, required=True,
                 metavar="MODEL..."),
        options.horizon(),
        options.discount(),
        Option("--host", default="127.0.0.1", metavar="ADDRESS",
               help="address to listen at; default 127.0.0.1: only this machine can ask"),
        Option("--port", type=Number(0, 65535), default=8000, metavar="N",
               help="port to listen at, default 8000"),
        Option("--token", metavar="TEXT", envvar="RSPMN_TOKEN",
               help="what requests must bring; made up if another address than this machine's is "
               "listened at; also read from RSPMN_TOKEN"),
        Option("--max-bytes", type=Number(1), default=8_000_000, metavar="N",
               help="largest body of a request, default 8000000"),
        Option("--max-seconds", type=Number(0, whole=False), default=5.0, metavar="SECONDS",
               help="longest time of a decision or a batch, default 5"),
    ]  # fmt: skip


def draw() -> list[click.Parameter]:
    """Parameters of `draw`."""
    return [
        options.model(),
        Option("--part", type=click.Choice(["template", "top", "unfolded", "states"]),
               help="of a recurrent model: a network, by default the template, or the graph of its "
               "most visited states"),
        options.state(),
        Option("--horizon", type=Number(1), metavar="STEPS",
               help="number of steps that best actions are for; default: until values converge"),
        Option("--steps", type=Number(1), default=2, metavar="N",
               help="number of steps of the unfolded network, default 2"),
        options.output(".svg", "the picture to write: .svg, .png or .dot", required=True),
    ]  # fmt: skip


def doctor() -> list[click.Parameter]:
    """Parameters of `doctor`."""
    return [
        options.log_files(),
        Option("--schema", type=InputFile(), metavar="FILE",
               help="a schema.toml; default: one proposed from the columns"),
        Option("--single", is_flag=True, help="a table of single decisions, one in each row"),
        *options.log_format(),
        options.memory_limit(),
    ]  # fmt: skip


def schema() -> list[click.Parameter]:
    """Parameters of `schema`."""
    return [
        options.log_files(),
        *options.log_format(),
        options.output(".toml", "the schema.toml to write"),
    ]


def learning() -> list[click.Parameter]:
    """Return the parameters of all learning."""
    return [
        Option("--schema", type=InputFile(), required=True, metavar="FILE", help="a schema.toml"),
        Option("--paper", is_flag=True, section=LEARNING,
               help="use the paper's settings: RDC and k-means"),
        Option(
            "--availability", type=click.Choice(["declared", "observed"]), section=LEARNING,
            help="which decisions a state offers: those taken in states alike, unless the schema "
            "says otherwise (declared, the default), or only those taken in it (observed)",
        ),
        options.seed(section=LEARNING),
        Option("--max-nodes", type=Number(0), metavar="N", section=LEARNING,
               help="stop learning at this number of nodes"),
        Option("--max-depth", type=Number(0), metavar="N", section=LEARNING,
               help="maximum number of sum nodes on a path"),
        Option("--max-seconds", type=Number(0, whole=False), metavar="SECONDS", section=LEARNING,
               help="stop learning after this number of seconds"),
        options.output(".json", "the model to write, .json or .json.gz", required=True),
    ]  # fmt: skip


def learn() -> list[click.Parameter]:
    """Parameters of `learn`."""
    return [
        options.log_files(),
        *learning(),
        Option(
            "--successors", "--future", type=click.Choice(["factored", "counts"]),
            help="estimate of the next state: factors shared by all branches, refined by counts "
            "(the default), or counts alone", section=LEARNING,
        ),
        Option("--em-passes", type=Number(0), default=0, metavar="N", section=LEARNING,
               help="additional passes of EM, default 0"),
        Option("--soft-em", is_flag=True, section=LEARNING,
               help="use soft EM instead of hard EM"),
        Option(
            "--time-limit", type=Number(0), metavar="STEPS", section=LOG,
            help="steps after which all episodes were cut; default: detected in the log; 0: none",
        ),
        *options.log_format(),
        options.memory_limit(),
    ]  # fmt: skip


def learn_spmn() -> list[click.Parameter]:
    """Parameters of `learn-spmn`."""
    return [
        options.file_to_read(
            "table", "a CSV, TSV, Parquet or JSON lines file, one row per decision"
        ),
        Option("--weights", metavar="COLUMN",
               help="column with the number of times that each row occurred"),
        *learning(),
    ]  # fmt: skip


def policy() -> list[click.Parameter]:
    """Parameters of `policy`."""
    return [
        options.model(),
        *options.plan(),
        options.time_step(),
        Option("--to", type=click.Choice(["csv", "json", "python", "tree", "sql"]), section=OUTPUT,
               help="write the policy out, for use without rspmn: its decisions in each state as "
               "CSV or JSON, a Python file, a decision tree in words, or a query"),
        options.output(".csv", "a file to write: .csv unless --to says otherwise"),
    ]  # fmt: skip


def evaluate() -> list[click.Parameter]:
    """Parameters of `evaluate`."""
    return [
        options.model(),
        options.log_files_option(),
        Option(
            "--policy", metavar="POLICY",
            help="a .csv file of rules, uniform, practice or recommended; without it, the "
            "recommended policy is compared with current practice",
        ),
        Option("--horizon", type=Number(1), metavar="STEPS",
               help="number of steps; default: the longest episode's"),
        options.discount(),
        Option("--probability", metavar="COLUMN",
               help="column with the probability of each logged decision; default: estimated"),
        Option("--draws", type=Number(1), default=300, metavar="N",
               help="draws from the posterior, default 300"),
        Option("--level", type=Number(0, 1, whole=False), default=0.9, metavar="SHARE",
               help="share of intervals that are meant to hold the value, default 0.9"),
        options.seed(),
        Option("--top", type=Number(0), default=10, metavar="N",
               help="number of states to list without --policy, default 10"),
        *options.log_format(),
    ]  # fmt: skip


def loglik() -> list[click.Parameter]:
    """Parameters of `loglik`."""
    return [
        options.model(),
        options.log_files(),
        *options.log_format(),
        options.output(".csv", "a .csv file to write the log-likelihood of each episode to"),
    ]


def sample() -> list[click.Parameter]:
    """Parameters of `sample`."""
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


def domains() -> list[click.Parameter]:
    """Parameters of `domains`."""
    return []


def generate() -> list[click.Parameter]:
    """Parameters of `generate`."""
    return [
        Argument("domain", "a name that `rspmn domains` lists"),
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
            help="how an episode's end is logged. flags (default): a column terminated; final: "
            "also a row with the state after the last step; padded: episodes of one length that "
            "stay in the terminal state; terminal_row: one row in the terminal state",
        ),
        Option("--wide", is_flag=True, help="one row per episode, as in the paper"),
        Option("--schema", type=OutputFile(".toml"), metavar="FILE",
               help="a .toml file to write the schema to", section=OUTPUT),
        options.output(".csv", "a .csv, .tsv, .parquet or .jsonl file to write", required=True),
    ]  # fmt: skip


def reproduce() -> list[click.Parameter]:
    """Parameters of `reproduce`."""
    return [
        Option("--domains", several=".+", metavar="DOMAIN", help="default: the paper's seven"),
        Option("--scale", type=Number(0, whole=False), default=1.0, metavar="FACTOR",
               help="factor for the numbers of episodes, default 1"),
        Option("--seeds", type=Number(1), default=5, metavar="N",
               help="number of logs for each cell, default 5"),
        Option("--baselines", several=".+", default=["table", "clone", "paper"], metavar="NAME",
               help="table, clone, paper (its own learner), spmn (of whole sequences), bcq (needs "
               "d3rlpy), none; default: table clone paper"),
        Option("--jobs", type=Number(1), default=os.cpu_count() or 1, metavar="N",
               help="processes, default: all cores"),
        Option("-o", "--output", required=True, metavar="FOLDER", section=OUTPUT,
               help="a folder to write; finished cells are kept there, and the same command "
               "resumes"),
    ]  # fmt: skip


def completion() -> list[click.Parameter]:
    """Parameters of `completion`."""
    return [Argument("shell", "bash, zsh or fish", type=click.Choice(["bash", "zsh", "fish"]))]


#: Sections of `rspmn --help`.
FROM_LOG, ASK, LOOK, TRY = "From a log to a model", "Ask a model", "Look at a model", "Try it out"

_ACT = DeclaredCommand(
    ASK, "acting.show_actions", "value of every action in a state, best first",
    (
        "rspmn act lake.json --state cell=14 --horizon 100",
        "rspmn act lake.json --state cell=14 --horizon 100 --sure",
        "rspmn act lake.json --table cases.csv --horizon 100 -o decisions.csv",
        "rspmn act oil.json --given test=yes result=open --quiet",
        "cat cases.csv | rspmn act lake.json --table - --horizon 100 -o -",
    ), act,
)  # fmt: skip

COMMANDS: dict[str, DeclaredCommand] = {
    "doctor": DeclaredCommand(
        FROM_LOG, "doctoring.doctor", "describe a log and report possible problems",
        (
            "rspmn doctor log.csv --schema schema.toml",
            "rspmn doctor oil.csv --single --schema oil.toml",
        ), doctor,
    ),
    "schema": DeclaredCommand(
        FROM_LOG, "doctoring.propose_schema", "propose a schema.toml for a log, to be edited",
        (
            "rspmn schema log.csv",
            "rspmn schema log.csv -o proposed.toml",
        ), schema,
    ),
    "learn": DeclaredCommand(
        FROM_LOG, "learning.learn", "learn a recurrent model from a log of episodes",
        (
            "rspmn learn log.csv --schema schema.toml -o model.json",
            "rspmn learn 'log*.csv' --schema schema.toml -o model.json --force",
            "cat log.csv | rspmn learn - --schema schema.toml -o model.json.gz",
        ), learn,
    ),
    "learn-spmn": DeclaredCommand(
        FROM_LOG, "learning.learn_single_shot", "learn a model from a table of past decisions",
        ("rspmn learn-spmn oil.csv --schema oil.toml -o drilling.json",), learn_spmn,
    ),
    "loglik": DeclaredCommand(
        FROM_LOG, "logs.show_likelihood", "log-likelihood of the episodes of a log",
        (
            "rspmn loglik lake.json log.csv",
            "rspmn loglik lake.json log.csv -o each.csv",
        ), loglik,
    ),
    "act": _ACT,
    "decide": _ACT._replace(summary="the same as act"),
    "explain": DeclaredCommand(
        ASK, "explaining.explain", "why an action is best in a state, and what decides it",
        (
            "rspmn explain lake.json --state cell=14 --horizon 30",
            "rspmn explain lake.json --state cell=14 --horizon 30 --log log.csv -o why.svg",
        ), explain,
    ),
    "returns": DeclaredCommand(
        ASK, "explaining.show_returns", "the distribution of what is earned: quantiles, worst tail",
        (
            "rspmn returns lake.json --horizon 30",
            "rspmn returns lake.json --state cell=14 --horizon 30 --tail 0.1",
        ), returns,
    ),
    "information": DeclaredCommand(
        ASK, "explaining.show_information", "what it is worth to observe a variable first",
        ("rspmn information lake.json --horizon 30 --observe cell",), information,
    ),
    "sensitivity": DeclaredCommand(
        ASK, "explaining.show_sensitivity", "probabilities at which the best action changes",
        (
            "rspmn sensitivity lake.json --state cell=14 --horizon 30",
            "rspmn sensitivity lake.json --state cell=14 --horizon 30 --event cell=13",
        ), sensitivity,
    ),
    "meu": DeclaredCommand(
        ASK, "queries.show_meu", "maximum expected utility, from the start or from a state",
        (
            "rspmn meu lake.json --horizon 100",
            "rspmn meu lake.json --state cell=14 --discount 0.95",
        ), meu,
    ),
    "policy": DeclaredCommand(
        ASK, "logs.show_policy", "the best decision in every state, as a table",
        (
            "rspmn policy lake.json --horizon 100",
            "rspmn policy lake.json --horizon 100 -o policy.csv",
            "rspmn policy lake.json --horizon 100 --to python -o lake_policy.py",
            "rspmn policy lake.json --horizon 100 --to tree",
        ), policy,
    ),
    "evaluate": DeclaredCommand(
        ASK, "evaluating.evaluate", "what a policy is worth, by a model and a log",
        (
            "rspmn evaluate lake.json --log log.csv --draws 50",
            "rspmn evaluate lake.json --log log.csv --policy uniform --draws 50 --level 0.95",
        ), evaluate,
    ),
    "check": DeclaredCommand(
        LOOK, "queries.check", "check that a model or a schema.toml is valid",
        (
            "rspmn check lake.json",
            "rspmn check schema.toml",
        ), check,
    ),
    "info": DeclaredCommand(
        LOOK, "queries.show_info", "show the variables and the size of a model",
        (
            "rspmn info lake.json",
            "cat lake.json | rspmn info - --json",
        ), info,
    ),
    "report": DeclaredCommand(
        LOOK, "reporting.report", "write a page about a model, to look at and to explore",
        (
            "rspmn report lake.json --horizon 30 -o lake.html",
            "rspmn report lake.json --horizon 30 --log log.csv --title 'A lake' -o report.html",
        ), report,
    ),
    "serve": DeclaredCommand(
        LOOK, "serving.serve", "answer questions about models over HTTP, with the page of each",
        (
            "rspmn serve lake.json --horizon 30",
            "rspmn serve lake=lake.json oil.json --port 8080",
        ), serve,
    ),
    "draw": DeclaredCommand(
        LOOK, "drawing.draw", "draw a model as .svg, .png or .dot",
        (
            "rspmn draw grid.json -o template.svg",
            "rspmn draw lake.json --state cell=14 --horizon 20 -o cell_14.svg",
            "rspmn draw lake.json --part states --horizon 20 -o states.png",
            "rspmn draw grid.json --part unfolded --steps 3 -o unfolded.svg",
        ), draw,
    ),
    "domains": DeclaredCommand(
        TRY, "domains.list_domains", "list the domains that logs can be generated of",
        ("rspmn domains",), domains,
    ),
    "generate": DeclaredCommand(
        TRY, "domains.generate", "generate a log of a domain",
        (
            "rspmn generate FrozenLake --episodes 300 --schema lake.toml -o lake.csv",
            "rspmn generate Maze --episodes 9 --files 3 -o maze.csv",
        ), generate,
    ),
    "sample": DeclaredCommand(
        TRY, "logs.sample", "sample episodes from a model",
        ("rspmn sample lake.json --episodes 50 --horizon 100 --best -o simulated.csv",), sample,
    ),
    "reproduce": DeclaredCommand(
        TRY, "domains.reproduce", "the paper's tables, beside the exact optimum",
        ("rspmn reproduce --domains GridUniverse --scale 0.01 --seeds 1 -o reproduction",),
        reproduce,
    ),
    "completion": DeclaredCommand(
        TRY, "completing.completion", "completion of names by the shell, as a script",
        (
            'eval "$(rspmn completion bash)"  # in ~/.bashrc',
            "rspmn completion fish > ~/.config/fish/completions/rspmn.fish",
        ), completion,
    ),
}  # fmt: skip
