"""Commands to look at a model: check, describe, draw, serve."""

import click

from rspmn.cli import options
from rspmn.cli.framework import Argument, Option, Section
from rspmn.cli.options import Number

LOOK = Section("Inspect and share a model")


@LOOK.command(
    "info.check",
    "check that a model or a schema.toml is valid",
    "rspmn check lake.json",
    "rspmn check schema.toml",
)
def _check() -> list[click.Parameter]:
    return [options.file_to_read("file", "a model file, or a schema ending in .toml")]


@LOOK.command(
    "info.show_info",
    "show the variables and the size of a model",
    "rspmn info lake.json",
    "cat lake.json | rspmn info - --json",
)
def _info() -> list[click.Parameter]:
    return [options.model()]


@LOOK.command(
    "report.report",
    "write an interactive HTML page about a model",
    "rspmn report lake.json --horizon 30 -o lake.html",
    "rspmn report lake.json --horizon 30 --log log.csv --title 'A lake' -o report.html",
)
def _report() -> list[click.Parameter]:
    return [
        options.model(),
        options.log_files_option(
            "files of the log, to compare the policy with current practice", required=False
        ),
        *options.log_format(),
        options.horizon(),
        options.discount(),
        Option("--title", help="title of the page; default: the name of the model's file"),
        Option("--most-nodes", type=Number(1), default=1000, metavar="N",
               help="number of interface nodes in the page, the most visited ones; default 1000"),
        options.output(".html", "the page to write", required=True),
    ]  # fmt: skip


@LOOK.command(
    "serve.serve",
    "serve models over HTTP: JSON API and HTML pages",
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
               help="address to listen on; default 127.0.0.1: local connections only"),
        Option("--port", type=Number(0, 65535), default=8000, metavar="N",
               help="port to listen on, default 8000"),
        Option("--token", metavar="TEXT", envvar="RSPMN_TOKEN",
               help="token that requests must send; generated if --host is not local; also read "
               "from RSPMN_TOKEN"),
        Option("--max-bytes", type=Number(1), default=8_000_000, metavar="N",
               help="maximum size of a request, default 8000000"),
        Option("--max-seconds", type=Number(0, whole=False), default=5.0, metavar="SECONDS",
               help="maximum time of a request for decisions, default 5"),
    ]  # fmt: skip


@LOOK.command(
    "draw.draw",
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
               help="part of a recurrent model, default template; states: a graph of the most "
               "visited states"),
        options.state(),
        Option("--horizon", type=Number(1), metavar="STEPS",
               help="number of steps of the policy; default: until the values converge"),
        Option("--steps", type=Number(1), default=2, metavar="N",
               help="number of steps of the unfolded network, default 2"),
        options.output(".svg", "the picture to write: .svg, .png or .dot", required=True),
    ]  # fmt: skip
