"""Completion of names by the shell."""

from click.shell_completion import get_completion_class

from rspmn.cli.commands import COMMANDS
from rspmn.cli.framework import COMPLETION, Arguments, Commands


def completion(arguments: Arguments) -> None:
    """Print the script that makes a shell complete the names of commands and options."""
    found = get_completion_class(arguments.shell)
    if found is not None:
        print(found(Commands(COMMANDS), {}, "rspmn", COMPLETION).source())
