"""Running the command that the words of a line name, and saying what is wrong with them."""

import sys
from collections.abc import Sequence

import click

from rspmn.cli.console import ExitCode, styled, wants_colour
from rspmn.cli.framework import Argument, Commands
from rspmn.errors import did_you_mean


def run_words(commands: Commands, words: Sequence[str]) -> int:
    """Run the command that words name; return its exit code."""
    try:
        with commands.make_context("rspmn", [*words], color=wants_colour()) as ctx:
            return int(commands.invoke(ctx))
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True, color=wants_colour(sys.stderr))
    except click.BadParameter as error:
        _print_error(_about_parameter(error))
        if isinstance(error, click.MissingParameter):
            _print_usage(error.ctx)
    except click.UsageError as error:
        _print_error(_about_name(error))
        _print_usage(error.ctx)
    except click.ClickException as error:
        _print_error(error.message)
    return ExitCode.WRONG_INPUT


def _about_name(error: click.UsageError) -> str:
    """Return what is wrong with a name or the number of words."""
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        names = [
            name
            for param in error.ctx.command.get_params(error.ctx)
            for name in (*param.opts, *param.secondary_opts)
            if name.startswith("-")
        ]
        return f"unknown option {error.option_name!r}: {did_you_mean(error.option_name, names)}"
    message = error.format_message().rstrip(".")
    return f"{message[0].lower()}{message[1:]}"


def _about_parameter(error: click.BadParameter) -> str:
    """Return what is wrong with the value of a parameter."""
    param = error.param
    if param is None:
        return error.message
    name = (
        max(param.opts, key=len) if isinstance(param, click.Option) else param.human_readable_name
    )
    if not isinstance(error, click.MissingParameter):
        return f"{name}: {error.message.rstrip('.')}"
    about = param.about if isinstance(param, Argument) else getattr(param, "help", "")
    return f"{name} is missing: {about}"


def _print_usage(ctx: click.Context | None) -> None:
    if ctx is not None:
        usage = ctx.get_usage().replace("Usage:", "usage:", 1)
        print(f"{usage}\ntry {ctx.command_path} --help", file=sys.stderr)


def _print_error(message: str) -> None:
    print(f"{styled('rspmn:', 'error', sys.stderr)} {message}", file=sys.stderr)
