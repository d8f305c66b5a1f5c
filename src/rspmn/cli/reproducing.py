"""The command that makes the paper's tables; its code is in `reproductions/` of a checkout."""

import argparse
import importlib
import sys
from pathlib import Path

import rspmn
from rspmn.errors import DataError

#: The root of the repository, if rspmn was installed from a checkout with `pip install --editable`.
CHECKOUT = Path(rspmn.__file__).parents[2]


def reproduce(arguments: argparse.Namespace) -> None:
    """Run `reproductions/paper_tables` of the checkout that rspmn is imported from."""
    if not (CHECKOUT / "reproductions" / "paper_tables").is_dir():
        raise DataError(
            "the reproductions are not part of the installed package: get the source of rspmn, "
            "run `pip install --editable '.[plot]'` in it, and repeat the command"
        )
    sys.path.append(str(CHECKOUT))
    importlib.import_module("reproductions.paper_tables.command").reproduce(arguments)
