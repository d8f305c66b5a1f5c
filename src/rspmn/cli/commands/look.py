"""Commands to look at a model: check, describe, draw, serve."""

import click

from rspmn.cli import options
from rspmn.cli.framework import Argument, Option, Section
from rspmn.cli.options import Number

LOOK = Section("Look at a model")


@LOOK.command(
    "looking.check",
    "check that a model or a schema.toml is valid",
    "rspmn check lake.json",
    "rspmn check schema.toml",
)
def _check() -> list[click.Parameter]:
    return [options.file_to_read("file", "a model file, or a schema ending in .toml")]


@LOOK.command(
    "looking.show_info",
    "show the variables and the size of a model",
    "rspmn info lake.json",
    "cat lake.json | rspmn info - --json",
)
def _info() -> list[click.Parameter]:
    return [options.model()]


@LOOK.command(
    "reporting.report",
    "write a page about a model, to look at and to explore",
    "rspmn report lake.json --horizon 30 -o lake.html",
    "rspmn report lake.json --horizon 30 --log log.csv --title 'A lake' -o report.html",
)
def _report() -> list[click.Parameter]:
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


@LOOK.command(
    "serving.serve",
    "answer questions about models over HTTP, with the page of each",
    "rspmn serve lake.json --horizon 30",
    "rspmn serve lake=lake.json oil.json --port 8080",
)
def _serve() -> list[click.Parameter]:
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


@LOOK.command(
    "drawing.draw",
    "draw a model as .svg, .png or .dot",
    "rspmn draw grid.json -o template.svg",
    "rspmn draw lake.json --state cell=14 --horizon 20 -o cell_14.svg",
    "rspmn draw lake.json --part states --horizon 20 -o states.png",
    "rspmn draw grid.json --part unfolded --steps 3 -o unfolded.svg",
)
def _draw() -> list[click.Parameter]:
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
