"""The command that explains a decision."""

import json
from pathlib import Path

from rspmn.cli.framework import Arguments
from rspmn.cli.queries import options, state_of
from rspmn.data.episodes import Episodes
from rspmn.errors import EvidenceError, ModelFileError
from rspmn.explain import Explanation
from rspmn.files import write_atomically
from rspmn.model import RSPMN
from rspmn.model_file import load


def explain(arguments: Arguments) -> None:
    """Print why the policy of a model decides as it does in a state."""
    model = load(arguments.model)
    state = state_of(model, arguments.state)
    policy = model.policy(**options(model, arguments))
    log = None
    if arguments.log is not None:
        if not isinstance(model, RSPMN):
            raise EvidenceError(
                f"{arguments.model} is a model of a single decision problem: leave --log out"
            )
        log = Episodes.from_log(arguments.log, model.schema)
    found = policy.explain(state, arguments.t, log=log)
    if arguments.output:
        _draw(found, arguments.output)
    print(json.dumps(found.to_dict()) if arguments.json else found)


def _draw(found: Explanation, path: str) -> None:
    ending = Path(path).suffix.lower()
    if ending not in (".svg", ".png"):
        raise ModelFileError(f"{path}: expected a name ending in .svg or .png")
    try:
        write_atomically(path, found.picture(ending[1:]))
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be written: {error.strerror}") from None
