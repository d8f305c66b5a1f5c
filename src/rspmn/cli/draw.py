"""The command that draws a model."""

import json

from rspmn.circuit import Network
from rspmn.circuit.draw import render
from rspmn.cli.framework import Arguments
from rspmn.cli.queries import Model, recurrent, state_of
from rspmn.cli.streams import check_ending
from rspmn.errors import EvidenceError
from rspmn.files import write_atomically
from rspmn.infer.node_values import values_in_node
from rspmn.model_file import load
from rspmn.spmn import SPMN
from rspmn.values import show


def draw(arguments: Arguments) -> None:
    """Draw a network of a model, a part of it, or the graph of states."""
    model = load(arguments.model)
    if arguments.state is not None and arguments.part not in (None, "template"):
        raise EvidenceError("--state and --part cannot be combined")
    if arguments.part == "states":
        nodes, picture = _states(model, arguments)
    elif arguments.state is not None:
        nodes, picture = _nodes_of_state(model, arguments)
    else:
        network = _part(model, arguments.part, arguments.steps)
        nodes, picture = len(network), _written(network, arguments)
    write_atomically(arguments.output, picture)
    if arguments.json:
        print(json.dumps({"picture": arguments.output, "nodes": nodes}))


def _written(network: Network, arguments: Arguments) -> bytes:
    ending = check_ending(arguments.output, ".svg", ".png", ".dot")
    if ending == ".png":
        return network.png()
    return (network.svg() if ending == ".svg" else network.dot()).encode()


def _part(model: Model, part: str | None, steps: int) -> Network:
    if isinstance(model, SPMN):
        if part is not None:
            raise EvidenceError(f"a model of single decisions has no {part}: omit --part")
        return model.network
    if part == "top":
        return model.top
    return model.unfold(steps) if part == "unfolded" else model.template


def _nodes_of_state(model: Model, arguments: Arguments) -> tuple[int, bytes]:
    """Return the picture of the interface nodes that a state may be in."""
    policy = recurrent(model, arguments, "--state and --part").policy(arguments.horizon)
    nodes = policy.nodes(state_of(model, arguments.state)).nonzero()[0].tolist()
    if not nodes:
        raise EvidenceError("--state: this state was never observed")
    template, states = policy.model.template, policy.index.network
    network = template.part([template.roots[node] for node in nodes])
    if arguments.output.lower().endswith(".dot"):
        return len(network), network.dot().encode()
    ending = check_ending(arguments.output, ".svg", ".png")
    captions = []
    for node in nodes:
        values = values_in_node(states.nodes, states.roots[node])
        made, _ = policy.choices(node)
        best = ", ".join(map(show, made.values())) or "unknown"
        where = ", ".join(f"{name}={show(value)}" for name, value in values.items())
        visits = policy.model.visits[node] if policy.model.visits else 0
        captions.append(f"{node}: {where}\nbest: {best}, {visits:.0f} logged steps")
    return len(network), render(network, ending[1:], nodes, captions)


def _states(model: Model, arguments: Arguments) -> tuple[int, bytes]:
    """Return the picture of the most visited states."""
    from rspmn.explain.picture import as_file
    from rspmn.plot import plot_states

    policy = recurrent(model, arguments, "--state and --part").policy(arguments.horizon)
    ending = check_ending(arguments.output, ".svg", ".png")
    return policy.model.num_state_interfaces, as_file(plot_states(policy), ending[1:])
