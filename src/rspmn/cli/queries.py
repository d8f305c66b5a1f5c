"""Commands that ask a model."""

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rspmn.circuit import Leaf, Max, Network
from rspmn.errors import ConvergenceError, EvidenceError, ModelFileError
from rspmn.files import write_atomically
from rspmn.infer import ActionValue, best_among, log_likelihood
from rspmn.infer.criterion import LEAST_KNOWN
from rspmn.infer.meu import show_share
from rspmn.infer.policy import Policy
from rspmn.model import RSPMN
from rspmn.model_file import load
from rspmn.schema import Schema
from rspmn.spmn import SPMN
from rspmn.trust import ActionInterval, HonestValue, HowSure
from rspmn.values import Mark, Value

Model = RSPMN | SPMN

#: The options that every question to a recurrent model has.
BASIC = {"horizon", "discount", "allow_untried"}


def check(arguments: argparse.Namespace) -> None:
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


def show_info(arguments: argparse.Namespace) -> None:
    """Say what a model holds."""
    model = load(arguments.model)
    facts: dict[str, object] = {
        "kind": "rspmn" if isinstance(model, RSPMN) else "spmn",
        "state variables": list(model.schema.state_variables),
        "decisions": list(model.schema.decisions),
        "utility": model.schema.utility,
    }
    if isinstance(model, RSPMN):
        facts |= {
            "set aside": list(model.set_aside),
            "interface nodes": model.num_state_interfaces,
            "END interface node": model.end,
            "top nodes": len(model.top),
            "template nodes": len(model.template),
            "template edges": model.template.num_edges,
            "logged steps": f"{sum(model.visits):.6g}",
        }
    else:
        facts |= {
            "nodes": len(model.network),
            "edges": model.network.num_edges,
            "rows": model.rows,
        }
    if arguments.json:
        print(json.dumps(facts))
        return
    for name, fact in facts.items():
        shown = ", ".join(fact) if isinstance(fact, list) else fact
        print(f"{name:>18}: {'none' if shown in (None, '') else shown}")


def show_meu(arguments: argparse.Namespace) -> None:
    """Print the maximum expected utility."""
    model = load(arguments.model)
    state = state_of(model, arguments.state)
    asked = options(model, arguments)
    # Rules and caution are of a policy; its value is the maximum expected utility with them.
    own = isinstance(model, RSPMN) and asked.keys() > BASIC
    answer = model.policy(**asked).value(state) if own else model.meu(state, **asked)
    honest = _honest(model, state, arguments)
    if arguments.json:
        facts = {"supported": answer.supported, "steps": answer.steps, "bound": answer.bound}
        more = {} if honest is None else {"honest": _honest_facts(honest)}
        print(json.dumps({"meu": _number(answer), **facts, **more}))
    elif math.isnan(answer):
        print(_unsupported(model, state))
    else:
        near = f" ± {answer.bound:.2g}" if answer.bound > 1e-6 * abs(answer) else ""
        found = f"{float(answer):.6g}{near}{_support(answer.steps, answer.supported)}"
        print(found if honest is None else f"{honest_line(honest)}\npromise (MEU) {found}")
        print_doubts(honest)


def _honest(
    model: Model, state: dict[str, Value | None] | None, arguments: argparse.Namespace
) -> HonestValue | None:
    """Return the honest value of a state; None where it is not defined."""
    if not isinstance(model, RSPMN) or arguments.allow_untried:
        return None
    if any(name not in model.schema.information_sets[0] for name in state or ()):
        return None  # in the middle of a step
    return honest_of(model.policy(**options(model, arguments)), state)


def honest_of(
    policy: Policy, state: dict[str, Value | None] | None = None, t: int = 0
) -> HonestValue | None:
    """Return the honest value of a policy; None where nothing is known of it."""
    if not policy.model.is_counted:
        return None
    try:
        found = policy.honest_value(state, t)
    except ConvergenceError as error:
        print(f"rspmn: no {error}", file=sys.stderr)
        return None
    return None if math.isnan(found.point) else found


def honest_line(honest: HonestValue) -> str:
    """Return an honest value as a line."""
    return f"honest value {honest.point:.4g}  (90 % interval {honest.low:.4g} to {honest.high:.4g})"


def print_doubts(honest: HonestValue | None) -> None:
    """Print why an honest value may not hold, and that the promise is not kept."""
    for caveat in () if honest is None else honest.caveats:
        print(f"warning: {caveat}")
    if honest is not None and not honest.kept:
        beyond = "more" if honest.promise > honest.point else "less"
        print(f"warning: the model promises {beyond} than its log supports")


def _honest_facts(honest: HonestValue) -> dict[str, object]:
    names = ("point", "low", "high", "promise", "optimism", "deviation", "kept")
    facts: dict[str, object] = {name: getattr(honest, name) for name in names}
    return facts | {"caveats": list(honest.caveats)}


def show_actions(arguments: argparse.Namespace) -> None:
    """Print what every value of the next decision is worth, the one to choose first."""
    if arguments.table is not None:
        from rspmn.cli.decisions import decide_table

        decide_table(arguments)
        return
    model = load(arguments.model)
    state = state_of(model, arguments.state)
    sure = _how_sure(model, state, arguments)
    answers = (
        model.action_values(state, **options(model, arguments))
        if sure is None
        else [each.action for each in sure.actions]
    )
    best = best_among(answers)
    rank = {answer.value: place for place, answer in enumerate(best)}
    answers.sort(
        key=lambda a: (
            rank.get(a.value, math.inf),
            math.isnan(a.utility),
            a.known < LEAST_KNOWN,
            0.0 if math.isnan(a.utility) else -a.utility,
        )
    )
    intervals = {} if sure is None else {each.action.value: each for each in sure.actions}
    if arguments.json:
        facts = [_action_facts(a) | _interval_facts(intervals.get(a.value)) for a in answers]
        print(json.dumps(facts))
        return
    if not best:
        print(_forbidden(answers) or _unsupported(model, state))
        return
    honest = _honest(model, state, arguments)
    if honest is not None:
        print(f"{honest_line(honest)}; promise (MEU) {honest.promise:.4g}")
    for a in answers:
        worth = f"{'':12}" if math.isnan(a.utility) else f"{a.utility:12.6g}"
        print(f"{'*' if a.best else ' '} {a.decision} = {a.value!s:<12} {worth}{_note(a)}")
        if a.value in intervals and not math.isnan(intervals[a.value].low):
            print(f"    {_shown_interval(intervals[a.value])}")
        for never in a.never_taken:
            print(f"    {never}")
    if best[0].averaged_over:
        print(f"not given: {', '.join(best[0].averaged_over)}; averaged over the logged values")
    if sure is not None:
        _print_sure(sure, () if honest is None else honest.caveats)
    print_doubts(honest)


def _how_sure(
    model: Model, state: dict[str, Value | None] | None, arguments: argparse.Namespace
) -> HowSure | None:
    """Return how sure a decision is, if that is asked for."""
    if not arguments.sure:
        return None
    if not isinstance(model, RSPMN):
        raise EvidenceError(
            f"{arguments.model} is a model of a single decision problem: leave --sure out; its "
            "answers have a standard error"
        )
    return model.policy(**options(model, arguments)).how_sure(state)


def _print_sure(sure: HowSure, caveats: Sequence[str]) -> None:
    for note in sure.notes:
        if note not in caveats:
            print(f"warning: {note}")
    if sure.too_close:
        rivals = ", ".join(str(each.action.value) for each in sure.rivals)
        print(f"too close to call: {rivals or 'another action'} may be as good")


def _shown_interval(found: ActionInterval) -> str:
    interval = f"{found.mean:.4g}, 90 % interval {found.low:.4g} to {found.high:.4g}"
    return f"{interval}; best with probability {found.best:.2g}"


def _interval_facts(found: ActionInterval | None) -> dict[str, object]:
    if found is None:
        return {}
    numbers = {"mean": found.mean, "low": found.low, "high": found.high, "best": found.best}
    facts = {name: _number(number) for name, number in numbers.items()}
    return {"sure": facts | {"notes": list(found.notes)}}


def _forbidden(answers: Sequence[ActionValue]) -> str:
    """Return that everything is forbidden, and why; nothing if it is not."""
    found = [f"{a.value}: {a.forbidden}" for a in answers if a.forbidden]
    return f"everything that is known here is forbidden: {'; '.join(found)}" if found else ""


def _note(answer: ActionValue) -> str:
    """Return what is to be said of how far an answer can be trusted."""
    if answer.forbidden:
        return f"  (forbidden: {answer.forbidden})"
    if not answer.tried:
        return "  (never tried here: extrapolated)"
    if not answer.available:
        return "  (not offered)"
    if math.isnan(answer.utility):
        return "  (unsupported: the log does not know what follows)"
    if answer.available < 1:
        offered = f"offered with probability {show_share(answer.available)}"
        return _support(answer.steps, answer.supported, offered)
    return _support(answer.steps, answer.supported)


def draw(arguments: argparse.Namespace) -> None:
    """Draw a network of a model."""
    model = load(arguments.model)
    ending = Path(arguments.output).suffix.lower()
    network = _part(model, arguments.part, arguments.steps)
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
    if arguments.json:
        print(json.dumps({"picture": arguments.output, "nodes": len(network)}))


# ---- shared by the commands -------------------------------------------------------------------


def options(model: Model, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options that only a recurrent model has: horizon, discount, untried decisions."""
    horizon, discount, untried = arguments.horizon, arguments.discount, arguments.allow_untried
    names = ("forbid", "only", "min_support", "caution")
    given = {name: getattr(arguments, name) for name in names if name in arguments}
    more = {name: value for name, value in given.items() if value not in ([], None)}
    if more.get("min_support") == 0:
        del more["min_support"]
    if isinstance(model, RSPMN):
        return {"horizon": horizon, "discount": discount, "allow_untried": untried, **more}
    if more:
        raise EvidenceError(
            f"{arguments.model} is a model of a single decision problem: leave "
            f"--{next(iter(more)).replace('_', '-')} out; in Python, model.policy(criterion=...)"
        )
    if horizon is not None or discount != 1:
        raise EvidenceError(
            f"{arguments.model} is a model of a single decision problem: leave --horizon and "
            "--discount out"
        )
    if untried:
        raise EvidenceError(
            f"{arguments.model} is a model of a single decision problem: leave --allow-untried out"
        )
    return {}


def _part(model: Model, part: str | None, steps: int) -> Network:
    if isinstance(model, SPMN):
        if part is not None:
            raise EvidenceError(
                f"a model of a single decision problem has no {part}: leave --part out"
            )
        return model.network
    if part == "top":
        return model.top
    return model.unfold(steps) if part == "unfolded" else model.template


def state_of(model: Model, pairs: Sequence[str] | None) -> dict[str, Value | None] | None:
    """Read NAME=VALUE pairs, each value as the model writes it; NAME= leaves it open."""
    if pairs is None:
        return None
    state: dict[str, Value | None] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise EvidenceError(f"--state {pair}: expected NAME=VALUE")
        if name in state:
            raise EvidenceError(f"--state: duplicate {name!r}")
        state[name] = _value(model, name, text)
    return state


def _value(model: Model, name: str, text: str) -> Value | None:
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


def _known(model: Model, name: str) -> list[Value]:
    """Return the values of a variable that the model names."""
    known: dict[Value, None] = {}
    for node in (model.template if isinstance(model, RSPMN) else model.network).nodes:
        if isinstance(node, Max) and node.decision == name:
            known |= dict.fromkeys(node.values)
        elif isinstance(node, Leaf) and node.variable == name:
            known |= dict.fromkeys(node.distribution.atoms() or ())
    return [value for value in known if not isinstance(value, Mark)]


def _unsupported(model: Model, state: dict[str, Value | None] | None) -> str:
    """Return which values the model never saw, and which it knows; or that it saw no decision."""
    given = {name: value for name, value in (state or {}).items() if value is not None}
    for name, value in given.items():
        known = _known(model, name)
        if known and value not in known:
            listed = ", ".join(map(str, known[:12])) + (", ..." if len(known) > 12 else "")
            return f"unsupported: the model never saw {name}={value}; it knows {name} = {listed}"
    together = " with ".join(f"{name}={value}" for name, value in given.items())
    network = model.from_anywhere if isinstance(model, RSPMN) else model.network
    if log_likelihood(network, given) == -math.inf:
        return f"unsupported: the model never saw {together}"
    certain = all(name in given for name in model.schema.information_sets[0])
    where = together if certain else f"some states with {together}" if given else "some states"
    return f"unsupported: no decision with a known outcome was ever made in {where}"


def _action_facts(answer: ActionValue) -> dict[str, object]:
    return {
        "decision": answer.decision,
        "value": answer.value,
        "utility": _number(answer.utility),
        "best": answer.best,
        "supported": answer.supported,
        "available": answer.available,
        "known": answer.known,
        "steps": answer.steps,
        "tried": answer.tried,
        "forbidden": answer.forbidden,
        "averaged_over": list(answer.averaged_over),
        "error": answer.error,
        "usual": answer.usual,
        "never_taken": list(map(str, answer.never_taken)),
    }


def _number(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def _support(steps: float, supported: float = 1.0, *others: str) -> str:
    """Return how far a number can be trusted, in brackets; nothing if there is nothing to say."""
    notes = [f"{steps:g} logged steps"] if steps else []
    notes += [f"supported {show_share(supported)}"] if supported < 1 else []
    notes += others
    return f"  ({', '.join(notes)})" if notes else ""
