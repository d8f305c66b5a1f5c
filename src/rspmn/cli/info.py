"""Commands that check and describe a model or a schema."""

import json

from rspmn.cli.framework import Arguments
from rspmn.display import fact_text
from rspmn.model import RSPMN
from rspmn.model_file import load
from rspmn.schema import Schema


def check(arguments: Arguments) -> None:
    """Say whether a model or schema is valid."""
    if arguments.file.endswith(".toml"):
        schema = Schema.load(arguments.file)
        order = " ≺ ".join("{" + ", ".join(group) + "}" for group in schema.order)
        found = f"a valid schema: {order} ≺ {{{schema.utility}}}"
    else:
        model = load(arguments.file)
        if isinstance(model, RSPMN):
            count = model.num_state_interfaces
            found = f"a sound template of {count} interface nodes, a valid top network"
        else:
            found = f"a valid network of {len(model.network)} nodes"
    if arguments.json:
        print(json.dumps({"file": arguments.file, "valid": True, "found": found}))
    else:
        print(f"{arguments.file}: {found}")


def show_info(arguments: Arguments) -> None:
    """Say what a model holds."""
    model = load(arguments.model)
    facts = {"kind": "rspmn" if isinstance(model, RSPMN) else "spmn", **model.facts}
    if arguments.json:
        print(json.dumps(facts))
        return
    for name, fact in facts.items():
        print(f"{name:>18}: {fact_text(fact)}")
