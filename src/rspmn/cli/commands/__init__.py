"""All commands, by section of the help: their functions, examples and parameters.

To add one, write its function in a module of `rspmn.cli`, and declare it here by a function that
returns its parameters. Nothing heavy is imported: `rspmn --help` is quick.
"""

from rspmn.cli.commands.from_log import FROM_LOG
from rspmn.cli.commands.inspect import LOOK
from rspmn.cli.commands.query import ASK
from rspmn.cli.commands.try_out import TRY
from rspmn.cli.framework import DeclaredCommand

COMMANDS: dict[str, DeclaredCommand] = {
    name: command
    for section in (FROM_LOG, ASK, LOOK, TRY)
    for name, command in section.commands.items()
}
