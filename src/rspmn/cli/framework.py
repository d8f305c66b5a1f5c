"""How commands are declared, found, parsed and run, on top of Click.

A command is a `DeclaredCommand`: its section of the help, its function, and what its help says.
Functions and all that they import are loaded when the command runs, so that `rspmn --help` is
quick. A function takes `Arguments`, the values of all parameters, and returns an `ExitCode` or
None.
"""

import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import click

from rspmn import __version__
from rspmn.cli.console import ExitCode, styled
from rspmn.cli.streams import OutputFile, is_printed, with_streams
from rspmn.errors import RspmnError, did_you_mean
from rspmn.files import refuse_unwritable

#: What the help says about exit codes.
EXIT_CODES = [
    ("0", "success"),
    ("1", "rspmn doctor found errors that prevent learning"),
    ("2", "invalid options, files or values"),
    ("3", "unsupported: the log has no data for the query"),
    ("130, 141", "interrupted; broken pipe"),
]
#: The variable by which a shell asks for completions.
COMPLETION = "_RSPMN_COMPLETE"
#: What the program is.
ABOUT = "Recurrent sum-product-max networks: decisions from logs."
#: The settings of all commands.
CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Arguments(SimpleNamespace):
    """The values of a command's parameters, by their names."""

    def __contains__(self, name: str) -> bool:
        return hasattr(self, name)


class DeclaredCommand(NamedTuple):
    """A command."""

    section: str
    function: str  # "module.function" of this package
    summary: str
    examples: Sequence[str]
    parameters: Callable[[], list[click.Parameter]]


Parameters = Callable[[], list[click.Parameter]]


class Section:
    """A section of the help, and its commands."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.commands: dict[str, DeclaredCommand] = {}

    def command(
        self, function: str, summary: str, *examples: str
    ) -> Callable[[Parameters], Parameters]:
        """Declare a command by the function that returns its parameters, and has its name."""

        def declare(parameters: Parameters) -> Parameters:
            name = parameters.__name__.strip("_").replace("_", "-")
            made = DeclaredCommand(self.title, function, summary, examples, parameters)
            self.commands[name] = made
            return parameters

        return declare


class Option(click.Option):
    """An option with a section of the help, which may take several values after its name."""

    def __init__(self, *names: str, section: str = "Options", several: str = "", **more: Any):
        """See `click.Option`; `several` is a pattern of the values that follow the first."""
        super().__init__([*names], multiple=bool(several) or more.pop("multiple", False), **more)
        self.section, self.several = section, several

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the value; of an option with several values, a list, or None if it has none."""
        found = super().process_value(ctx, value)
        return ([*found] or None) if self.multiple else found


class Command(click.Command):
    """A command that runs a function of this package."""

    def __init__(self, name: str, declared: DeclaredCommand) -> None:
        params = [*declared.parameters(), *_of_every_command()]
        writes = any(isinstance(param.type, OutputFile) for param in params)
        if writes and all(param.name != "force" for param in params):
            force = Option("--force", is_flag=True, help="overwrite existing files",
                           section="Output")  # fmt: skip
            params.append(force)
        super().__init__(name, params=params, help=_sentence(declared.summary))
        self.declared = declared
        self.context_settings = CONTEXT

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of a command."""
        several = {
            name: re.compile(param.several)
            for param in self.params
            if isinstance(param, Option) and param.several
            for name in param.opts
        }
        return super().parse_args(ctx, list(_repeated(args, several)))

    def invoke(self, ctx: click.Context) -> int:
        """Run the function, and say of its errors which options they are about."""
        arguments = Arguments(**ctx.params)
        with self._standard_output(ctx):
            try:
                self._refuse_outputs(ctx)
                return function_of(self.declared)(arguments) or ExitCode.ANSWERED
            except RspmnError as error:
                if arguments.verbose:
                    raise
                raise click.ClickException(self._said(str(error))) from error

    def _outputs(self, ctx: click.Context) -> Iterator[Path]:
        for param in self.params:
            given = ctx.params.get(param.name or "")
            if isinstance(param.type, OutputFile) and given is not None:
                yield Path(given)

    def _refuse_outputs(self, ctx: click.Context) -> None:
        """Refuse files that must not or cannot be written before anything is computed."""
        outputs = [path.resolve() for path in self._outputs(ctx)]
        logs = ctx.params.get("log") or ()
        read = {Path(log).resolve() for log in ([logs] if isinstance(logs, str) else logs)}
        for k, path in enumerate(outputs):
            if path in read:
                raise RspmnError(f"{path} is the log: give another file to write")
            if path in outputs[:k]:
                raise RspmnError(f"{path} would be written twice: give two files")
        for path in self._outputs(ctx):
            if os.path.isfile(path) and not ctx.params["force"]:  # noqa: PTH113  # raises nothing
                raise RspmnError(f"{path} already exists; use --force to overwrite it")
            refuse_unwritable(path)

    @contextmanager
    def _standard_output(self, ctx: click.Context) -> Iterator[None]:
        """Print the file that stands for standard output; what is said goes to standard error."""
        several = [path for path in self._outputs(ctx) if is_printed(path)]
        if not several:
            yield
            return
        if len(several) > 1:
            raise click.ClickException("standard output takes one file: name the others")
        (printed,) = several
        if sys.stdout is None:
            raise click.ClickException("standard output is closed: give a file instead of -")
        with redirect_stdout(io.StringIO()) as said:
            yield
        if not ctx.params["quiet"]:
            print(said.getvalue().replace(str(printed), "-"), end="", file=sys.stderr)
        if printed.exists():
            sys.stdout.flush()
            sys.stdout.buffer.write(printed.read_bytes())

    def _said(self, message: str) -> str:
        """Return a message of the library with names of options instead of parameters."""
        options = {
            param.name: max(param.opts, key=len)
            for param in self.params
            if isinstance(param, click.Option) and param.name
        }
        message = with_streams(message)
        message = re.sub(r"\(\w+=\S+ in Python, (--[\w-]+) on the command line\)", r"(\1)", message)
        message = re.sub(
            r"\bthe option (\w+)",
            lambda found: options.get(found[1], f"--{found[1].replace('_', '-')}"),
            message,
        )
        first = re.match(r"(\w+)(?=: | must )", message)
        if first is not None and first[1] in options:
            return options[first[1]] + message[first.end() :]
        return message

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments and the options, by section."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if isinstance(param, Argument):
                sections.setdefault("Arguments", []).append(
                    (param.human_readable_name, param.about)
                )
            elif (found := param.get_help_record(ctx)) is not None:
                section = param.section if isinstance(param, Option) else "Options"
                sections.setdefault(section, []).append(found)
        last = ("Output", "Options")
        names = [name for name in sections if name not in last]
        for name in (*names, *(name for name in last if name in sections)):
            with formatter.section(styled(name, "heading")):
                formatter.write_dl(sections[name])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        if self.declared.examples:
            with formatter.section(styled("Examples", "heading")):
                for example in self.declared.examples:
                    formatter.write(f"  {example}\n")


class Argument(click.Argument):
    """An argument that the help says something about."""

    def __init__(self, name: str, about: str, **more: Any) -> None:
        """See `click.Argument`."""
        super().__init__([name], **more)
        self.about = about


class Commands(click.Group):
    """All commands, each made when it is asked for."""

    def __init__(self, declared: Mapping[str, DeclaredCommand]) -> None:
        version = click.version_option(
            __version__, prog_name="rspmn", message="%(prog)s %(version)s"
        )
        super().__init__("rspmn", help=ABOUT, context_settings=CONTEXT, no_args_is_help=True)
        version(self)
        self.declared = declared

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return [*self.declared]

    def get_command(self, ctx: click.Context, cmd_name: str) -> Command | None:
        """Return a command by its name."""
        found = self.declared.get(cmd_name)
        return None if found is None else Command(cmd_name, found)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first word names."""
        if args and args[0] not in self.declared:
            name = args[0]
            raise click.UsageError(
                f"unknown command {name!r}: {did_you_mean(name, self.declared)}", ctx
            )
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by section, then the options and what exit codes mean."""
        for section in dict.fromkeys(each.section for each in self.declared.values()):
            with formatter.section(styled(section, "heading")):
                formatter.write_dl([
                    (name, each.summary)
                    for name, each in self.declared.items()
                    if each.section == section
                ])  # fmt: skip
        options = [param.get_help_record(ctx) for param in self.get_params(ctx)]
        with formatter.section(styled("Options", "heading")):
            formatter.write_dl([record for record in options if record is not None])
        with formatter.section(styled("Exit codes", "heading")):
            formatter.write_dl(EXIT_CODES)


def function_of(declared: DeclaredCommand) -> Callable[[Arguments], int | None]:
    """Return the function of a command."""
    module, name = declared.function.split(".")
    found: Callable[[Arguments], int | None] = getattr(import_module(f"rspmn.cli.{module}"), name)
    return found


def _repeated(args: Sequence[str], several: Mapping[str, re.Pattern[str]]) -> Iterator[str]:
    """Repeat the name of an option before each of the values that follow it."""
    current, first, ended = "", False, False
    for word in args:
        ended = ended or word == "--"
        name = word.split("=")[0]
        if ended:
            yield word
        elif name in several:
            current, first = name, name == word
            yield word
        elif first:
            first = False
            yield word
        elif current and not word.startswith("-") and several[current].fullmatch(word):
            yield from (current, word)
        else:
            current = ""
            yield word


def _of_every_command() -> list[click.Parameter]:
    return [
        Option("--json", is_flag=True, help="print JSON", section="Output"),
        Option("-q", "--quiet", is_flag=True, help="print only the answer",
               section="Output"),
        Option("-v", "--verbose", is_flag=True, help="print the traceback of errors",
               section="Output"),
    ]  # fmt: skip


def _sentence(summary: str) -> str:
    return f"{summary[0].upper()}{summary[1:]}."
