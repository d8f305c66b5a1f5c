"""The commands that explain a decision: why, what it may earn, what would change it."""

import json
from dataclasses import asdict

from rspmn.cli.console import print_table
from rspmn.cli.framework import Arguments
from rspmn.cli.queries import options, recurrent, state_of
from rspmn.cli.streams import check_ending
from rspmn.data.episodes import Episodes
from rspmn.errors import EvidenceError
from rspmn.files import write_atomically
from rspmn.infer.policy import Policy
from rspmn.model_file import load, load_rspmn
from rspmn.values import Value, show


def explain(arguments: Arguments) -> None:
    """Print why the policy of a model decides as it does in a state."""
    model = load(arguments.model)
    state = state_of(model, arguments.state)
    policy = model.policy(**options(model, arguments))
    log = None
    if arguments.log is not None:
        log = Episodes.from_log(arguments.log, recurrent(model, arguments, "--log").schema)
    found = policy.explain(state, arguments.t, log=log)
    if arguments.output:
        ending = check_ending(arguments.output, ".svg", ".png")
        write_atomically(arguments.output, found.picture(ending[1:]))
    print(json.dumps(found.to_dict()) if arguments.json else found)


def show_returns(arguments: Arguments) -> None:
    """Print the distribution of the return of a policy, and of the one with the best tail."""
    policy, state = _asked(arguments)
    found = policy.returns(state=state, t=arguments.t)
    tail = None
    if arguments.tail is not None:
        if arguments.t:
            raise EvidenceError("--tail needs -t 0: the policy depends on earlier rewards")
        tail = policy.tail(arguments.tail)
    if arguments.json:
        facts = found.to_dict()
        more = {} if tail is None else {"tail": tail.returns(state).to_dict()}
        print(json.dumps(facts | more))
        return
    print(found)
    if tail is not None:
        print(f"\nif the worst {100 * tail.share:g} % are optimised:\n{tail.returns(state)}")


def show_information(arguments: Arguments) -> None:
    """Print what it is worth to observe variables before the next decision."""
    policy, state = _asked(arguments)
    given = {name for name, value in (state or {}).items() if value is not None}
    names = arguments.observe or [
        name for name in policy.model.schema.information_sets[0] if name not in given
    ]
    found = [policy.value_of_information(state, name, arguments.t) for name in names]
    found.sort(key=lambda each: -each.gain)
    if arguments.json:
        print(json.dumps([each.to_dict() for each in found]))
        return
    if not found:
        print("all variables observed before the decision are given in --state")
        return
    print(f"without observing: {show(found[0].decided)}, value {found[0].unseen:.4g}")
    print_table({
        "variable": [each.variable for each in found],
        "gain": [each.gain for each in found],
        "changes the decision": [f"{each.changes:.0%}" for each in found],
    })  # fmt: skip


def show_sensitivity(arguments: Arguments) -> None:
    """Print at which probabilities of what follows the best action changes."""
    policy, state = _asked(arguments)
    values = state_of(policy.model, arguments.event, "--event") or {}
    event = {name: value for name, value in values.items() if value is not None} or None
    found = policy.sensitivity(state, arguments.t, event)[: arguments.top]
    if arguments.json:
        print(json.dumps([asdict(each) for each in found]))
        return
    for each in found:
        print(each)
    if not found:
        print("no change of a single probability changes the best action")


def _asked(arguments: Arguments) -> tuple[Policy, dict[str, Value | None] | None]:
    """Return the policy of a recurrent model, and the state that is asked about."""
    model = load_rspmn(arguments.model)
    return model.policy(**options(model, arguments)), state_of(model, arguments.state)
