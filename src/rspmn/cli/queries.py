"""What commands that ask a model share: options, states, and how far to trust an answer."""

import math
import sys
from collections.abc import Sequence
from typing import Any

from rspmn.circuit import Leaf, Max
from rspmn.cli.console import warn
from rspmn.cli.framework import Arguments
from rspmn.errors import ConvergenceError, EvidenceError
from rspmn.infer import log_likelihood
from rspmn.infer.evidence import as_state
from rspmn.infer.meu import show_share
from rspmn.infer.policy import Policy
from rspmn.model import RSPMN
from rspmn.spmn import SPMN
from rspmn.trust import HonestValue
from rspmn.trust.safe_choice import SafeChoice
from rspmn.trust.unseen import LoggedValues
from rspmn.values import Mark, Value, short, show_steps

Model = RSPMN | SPMN

#: Shares above this are 1 to three digits, and not worth a note.
NEARLY_ALL = 0.9995
#: How somebody may write what is true or false.
TRUTHS = {
    "yes": True, "y": True, "true": True, "1": True,
    "no": False, "n": False, "false": False, "0": False,
}  # fmt: skip


def options(model: Model, arguments: Arguments) -> dict[str, Any]:
    """Return the options that only a recurrent model has: horizon, discount, what is offered."""
    horizon, discount, offer = arguments.horizon, arguments.discount, arguments.offer
    names = ("forbid", "only", "min_support")
    given = {name: getattr(arguments, name) for name in names if name in arguments}
    more = {name: value for name, value in given.items() if value is not None}
    if more.get("min_support") == 0:
        del more["min_support"]
    if "plain" in arguments and arguments.plain:
        more["safe"] = False
    if isinstance(model, RSPMN):
        return {"horizon": horizon, "discount": discount, "offer": offer, **more}
    if more:
        option = next(iter(more)).replace("_", "-").replace("safe", "plain")
        recurrent(model, arguments, f"--{option}")
    if horizon is not None or discount != 1:
        recurrent(model, arguments, "--horizon and --discount")
    if offer != "expected":
        recurrent(model, arguments, "--offer")
    return {}


def recurrent(model: Model, arguments: Arguments, option: str) -> RSPMN:
    """Return a recurrent model; an option that only these have is refused for others."""
    if isinstance(model, RSPMN):
        return model
    raise EvidenceError(f"{arguments.model} is a model of single decisions: omit {option}")


def state_of(
    model: Model, pairs: Sequence[str] | None, option: str = "--state"
) -> dict[str, Value | None] | None:
    """Read NAME=VALUE pairs, each value as the model writes it; NAME= leaves it open."""
    if pairs is None:
        return None
    state: dict[str, Value | None] = {}
    for pair in pairs:
        name, text = _name_and_value(model, pair, option)
        if name in state:
            raise EvidenceError(f"{option}: duplicate {name!r}")
        state[name] = _value(model, name, text)
    return state


def _name_and_value(model: Model, pair: str, option: str) -> tuple[str, str]:
    """Divide NAME=VALUE; of several =, names of variables may have some, such as `level >= 2`."""
    name, equals, text = pair.partition("=")
    if not equals:
        raise EvidenceError(f"{option} {pair}: expected NAME=VALUE")
    for variable in sorted(model.schema.variables, key=len, reverse=True):
        if pair.startswith(f"{variable}="):
            return variable, pair[len(variable) + 1 :]
    return name, text


def _value(model: Model, name: str, text: str) -> Value | None:
    """Find the value that is written like this; else read a number, else take the text."""
    if not text:
        return None
    known = _known(model, name)
    exact = [value for value in known if str(value) == text]
    near = exact or [value for value in known if str(value).lower() == text.lower()]
    if len(near) == 1:
        return near[0]
    if text.lower() in TRUTHS and any(isinstance(value, bool) for value in known):
        return TRUTHS[text.lower()]
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


def unsupported(model: Model, state: dict[str, Value | None] | None) -> str:
    """Return which values the model never saw, and which it knows; or that it saw no decision."""
    given = {name: value for name, value in (state or {}).items() if value is not None}
    for name, value in given.items():
        known = _known(model, name)
        if known and value not in known:
            listed = ", ".join(map(str, known[:12])) + (", ..." if len(known) > 12 else "")
            return f"unsupported: {name}={value} was never observed; known values: {listed}"
    together = " with ".join(f"{name}={value}" for name, value in given.items())
    network = model.from_anywhere if isinstance(model, RSPMN) else model.network
    if log_likelihood(network, given) == -math.inf:
        return f"unsupported: {together} was never observed"
    certain = all(name in given for name in model.schema.information_sets[0])
    where = together if certain else f"some states with {together}" if given else "some states"
    return f"unsupported: no decision with a known outcome was ever made in {where}"


def support(steps: float, supported: float = 1.0, *others: str) -> str:
    """Return how far a number can be trusted, in brackets; nothing if there is nothing to say."""
    notes = [show_steps(steps)] if steps else []
    notes += [f"supported {show_share(supported)}"] if supported < NEARLY_ALL else []
    notes += others
    return f"  ({', '.join(notes)})" if notes else ""


def honest_in(
    model: Model, state: dict[str, Value | None] | None, arguments: Arguments
) -> HonestValue | None:
    """Return the honest value of a state; None where it is not defined."""
    if not as_state(state or {}, model.schema).keys() <= set(model.schema.information_sets[0]):
        return None  # in the middle of a step
    return honest_of(policy_of(model, arguments), state)


def policy_of(model: Model, arguments: Arguments) -> Policy:
    """Return the policy that is recommended, by the options given."""
    given = options(model, arguments)  # refuses those of recurrent models for others
    return model.policy(**given) if isinstance(model, RSPMN) else model.recommended


def honest_of(policy: Policy, state: dict[str, Value | None] | None = None) -> HonestValue | None:
    """Return the honest value of a policy; None where nothing is known of it."""
    if not policy.model.is_counted:
        return None
    try:
        found = policy.honest_value(state)
    except ConvergenceError as error:
        print(f"rspmn: no {error}", file=sys.stderr)
        return None
    return None if math.isnan(found.point) else found


def honest_line(honest: HonestValue) -> str:
    """Return an honest value as a line."""
    interval = f"{short(honest.low)} to {short(honest.high)}"
    return f"honest value {short(honest.point)}  (90 % interval {interval})"


def warn_of_unseen(model: Model, state: dict[str, Value | None] | None) -> None:
    """Print which values of a state are outside the log."""
    if isinstance(model, RSPMN):
        known = {name: value for name, value in (state or {}).items() if value is not None}
        for note in LoggedValues(model).never(known, possible=True):
            warn(note)


def choice_of(model: Model, arguments: Arguments) -> SafeChoice | None:
    """Return which plan is recommended, and why; None if plans were not compared with practice."""
    return policy_of(model, arguments).choice


def print_choice(model: Model, arguments: Arguments) -> None:
    """Print which plan is recommended, and why, if others are safer than the first."""
    choice = choice_of(model, arguments)
    if choice is not None and choice.chosen:
        warn(f"recommended: {choice.text}")


def print_doubts(honest: HonestValue | None) -> None:
    """Print why an honest value may not hold, and that the promise is not kept."""
    for caveat in () if honest is None else honest.caveats:
        warn(caveat)
    if honest is not None and not honest.kept:
        beyond = "higher" if honest.promise > honest.point else "lower"
        warn(f"the MEU is {beyond} than the log supports")
