"""The command line: thin, each command a few lines over the library.

Bad input is answered with one sentence on standard error and exit code 2.
"""

import argparse
import io
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rspmn import __version__
from rspmn.errors import EvidenceError, RspmnError

if TYPE_CHECKING:
    from rspmn.infer import ActionValue
    from rspmn.model import RSPMN
    from rspmn.values import Value

__all__ = ["main"]

Command = Callable[[argparse.Namespace], None]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a sign shows a "?"
            stream.reconfigure(errors="replace")
    try:
        arguments = _parser().parse_args(argv)
        run: Command = arguments.run
        run(arguments)
        if sys.stdout is not None:  # it is None when the shell closed it
            sys.stdout.flush()
    except RspmnError as error:
        print(f"rspmn: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("rspmn: interrupted; nothing was written", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of a pipe went away: nothing to say to anybody
        _close_stdout()
        return 141
    except OSError as error:  # commands name their own files; what is left is standard output
        _close_stdout()
        print(f"rspmn: cannot write the output: {error.strerror}", file=sys.stderr)
        return 2
    return 0


def _close_stdout() -> None:
    """Keep Python from failing again when it flushes on exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rspmn", description="Recurrent sum-product-max networks: decisions from logs."
    )
    parser.add_argument("--version", action="version", version=f"rspmn {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def command(name: str, run: Command, summary: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        sub.set_defaults(run=run)
        return sub

    check = command("check", _check, "say whether a model or schema.toml is valid, or what is not")
    check.add_argument("file", help="a model file, or a schema ending in .toml")

    info = command("info", _info, "say what a model holds")
    check.add_argument("--json", action="store_true", help="print JSON")
    meu = command("meu", _meu, "maximum expected utility, from the start or from a state")
    act = command("act", _act, "what every action is worth in a state, best first")
    for sub in (info, meu, act):
        sub.add_argument("model", help="a model file")
        sub.add_argument("--json", action="store_true", help="print JSON")
    for sub in (meu, act):
        sub.add_argument(
            "--state", "--given", nargs="+", action="extend", metavar="NAME=VALUE", default=None,
            help="what is known of this step, decisions already made included",
        )  # fmt: skip
        sub.add_argument("--horizon", type=int, help="steps to go; without it until convergence")
        sub.add_argument("--discount", type=float, default=1.0, help="per step, default 1")

    draw = command("draw", _draw, "draw a model as .svg, .png or .dot")
    draw.add_argument("model", help="a model file")
    draw.add_argument("-o", "--output", required=True, help="the picture to write")
    draw.add_argument(
        "--part", choices=["template", "top", "unfolded"], default="template",
        help="which network, default the template",
    )  # fmt: skip
    draw.add_argument("--steps", type=int, default=2, help="of the unfolded network")
    return parser


# ---- commands --------------------------------------------------------------------------


def _check(arguments: argparse.Namespace) -> None:
    from rspmn.model import RSPMN
    from rspmn.schema import Schema

    if arguments.file.endswith(".toml"):
        schema = Schema.load(arguments.file)
        order = " ≺ ".join("{" + ", ".join(group) + "}" for group in schema.order)
        found = f"a valid schema: {order} ≺ {{{schema.utility}}}"
    else:
        model = RSPMN.load(arguments.file)
        found = f"a sound template of {model.num_interfaces} interface nodes, a valid top network"
    if arguments.json:
        print(json.dumps({"file": arguments.file, "valid": True, "found": found}))
    else:
        print(f"{arguments.file}: {found}")


def _info(arguments: argparse.Namespace) -> None:
    model = _load(arguments.model)
    facts = {
        "state variables": list(model.schema.state_variables),
        "decisions": list(model.schema.decisions),
        "utility": model.schema.utility,
        "interface nodes": model.num_interfaces,
        "END interface node": model.end,
        "top nodes": len(model.top),
        "template nodes": len(model.template),
        "template edges": model.template.num_edges,
        "logged steps": sum(model.visits),
    }
    if arguments.json:
        print(json.dumps(facts))
    else:
        for name, fact in facts.items():
            shown = ", ".join(fact) if isinstance(fact, list) else fact
            print(f"{name:>18}: {'none' if shown in (None, '') else shown}")


def _meu(arguments: argparse.Namespace) -> None:
    model = _load(arguments.model)
    state = _state(model, arguments.state)
    answer = model.meu(state, arguments.horizon, arguments.discount)
    if arguments.json:
        facts = {"supported": answer.supported, "steps": answer.steps, "bound": answer.bound}
        print(json.dumps({"meu": _number(answer), **facts}))
    elif answer.supported:
        near = f" ± {answer.bound:.2g}" if answer.bound > 1e-6 * abs(answer) else ""
        print(f"{float(answer):.6g}{near}{_behind(answer.steps)}")
    else:
        print(_unsupported(model, state))


def _act(arguments: argparse.Namespace) -> None:
    from rspmn.infer import best_among

    model = _load(arguments.model)
    state = _state(model, arguments.state)
    answers = model.expected_utilities(state, arguments.horizon, arguments.discount)
    best = {answer.value for answer in best_among(answers)}
    answers.sort(key=lambda a: (not a.supported, -a.utility if a.available else math.inf))
    if arguments.json:
        print(json.dumps([_action_facts(a, a.value in best) for a in answers]))
        return
    if not best:
        print(_unsupported(model, state))
        return
    for a in answers:
        note = (
            _behind(a.steps) if a.supported else f"  (offered with probability {a.available:.3g})"
        )
        mark = "*" if a.value in best else " "
        worth = f"{a.utility:12.6g}" if a.available else f"{'':12}"
        print(f"{mark} {a.decision} = {a.value!s:<12} {worth}{note}")


def _draw(arguments: argparse.Namespace) -> None:
    from rspmn.errors import ModelFileError
    from rspmn.files import write_atomically

    model = _load(arguments.model)
    ending = Path(arguments.output).suffix.lower()
    parts = {"template": lambda: model.template, "top": lambda: model.top}
    network = parts.get(arguments.part, lambda: model.unfold(arguments.steps))()
    writers: dict[str, Callable[[], bytes]] = {
        ".svg": lambda: network.svg().encode(),
        ".png": network.png,
        ".dot": lambda: network.dot().encode(),
    }
    if ending not in writers:
        raise ModelFileError(f"{arguments.output}: expected a name ending in .svg, .png or .dot")
    picture = writers[ending]()
    try:
        write_atomically(arguments.output, picture)
    except OSError as error:
        raise ModelFileError(f"{arguments.output}: cannot be written: {error.strerror}") from None


# ---- what they share -------------------------------------------------------------------


def _load(path: str) -> "RSPMN":
    from rspmn.model import RSPMN

    return RSPMN.load(path)


def _state(model: "RSPMN", pairs: Sequence[str] | None) -> "dict[str, Value | None] | None":
    """Read NAME=VALUE pairs, each value as the model writes it; NAME= leaves it open."""
    if pairs is None:
        return None
    state: dict[str, Value | None] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise EvidenceError(f"--state {pair}: expected NAME=VALUE")
        if name in state:
            raise EvidenceError(f"--state: {name!r} stands twice")
        state[name] = _value(model, name, text)
    return state


def _value(model: "RSPMN", name: str, text: str) -> "Value | None":
    """Find the value that is written like this; else read a number, else take the text."""
    if not text:
        return None
    known = _known(model, name)
    exact = [value for value in known if str(value) == text]
    near = exact or [value for value in known if str(value).lower() == text.lower()]
    if len(near) == 1:
        return near[0]
    for number in (int, float):
        try:
            value = number(text)
        except ValueError:
            continue
        if math.isfinite(value) and "_" not in text:  # Python would read 1_0 as ten
            return value
    return text


def _known(model: "RSPMN", name: str) -> "list[Value]":
    """Return the values of a variable that the model names."""
    from rspmn.circuit import Categorical, Leaf, Max

    known: dict[Value, None] = {}
    for node in model.template.nodes:
        if isinstance(node, Max) and node.decision == name:
            known |= dict.fromkeys(node.values)
        elif isinstance(node, Leaf) and isinstance(node.distribution, Categorical):
            known |= dict.fromkeys(node.distribution.values if node.variable == name else ())
    return list(known)


def _unsupported(model: "RSPMN", state: "dict[str, Value | None] | None") -> str:
    """Say what the model never saw, and what it knows instead."""
    given = {name: value for name, value in (state or {}).items() if value is not None}
    for name, value in given.items():
        known = _known(model, name)
        if known and value not in known:
            listed = ", ".join(map(str, known[:12])) + (", ..." if len(known) > 12 else "")
            return f"unsupported: the model never saw {name}={value}; it knows {name} = {listed}"
    together = " with ".join(f"{name}={value}" for name, value in given.items())
    return f"unsupported: the model never saw {together or 'a start'}"


def _action_facts(answer: "ActionValue", best: bool) -> dict[str, object]:
    return {
        "decision": answer.decision,
        "value": answer.value,
        "utility": _number(answer.utility),
        "best": best,
        "supported": answer.supported,
        "available": answer.available,
        "steps": answer.steps,
    }


def _number(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def _behind(steps: float) -> str:
    return f"  ({steps:g} logged steps)" if steps else ""
