"""Commands about one state: what to do in it, and what it is worth."""

import json
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from rspmn.cli.console import ExitCode, styled, warn
from rspmn.cli.framework import Arguments
from rspmn.cli.queries import (
    NEARLY_ALL,
    Model,
    choice_of,
    honest_in,
    honest_line,
    options,
    print_choice,
    print_doubts,
    recurrent,
    state_of,
    support,
    unsupported,
    warn_of_unseen,
)
from rspmn.errors import EvidenceError
from rspmn.infer import ActionValue, best_among
from rspmn.infer.criterion import LEAST_KNOWN
from rspmn.infer.meu import show_share
from rspmn.model import RSPMN
from rspmn.model_file import load
from rspmn.schema import Schema
from rspmn.trust import ActionInterval, HonestValue, HowSure
from rspmn.values import Value, plain, short

State = dict[str, Value | None]
#: The options that every question to a recurrent model has.
BASIC = {"horizon", "discount", "offer"}


class Answered(NamedTuple):
    """What every value of a decision is worth, the one to choose first."""

    before: dict[str, Value]  # decisions of the step that this one comes after
    answers: list[ActionValue]
    sure: HowSure | None

    @property
    def best(self) -> list[ActionValue]:
        """The best values; the first is to be chosen."""
        return best_among(self.answers)


def show_actions(arguments: Arguments) -> int:
    """Print what every value of the decisions to make now is worth, those to choose first."""
    if arguments.table is not None:
        from rspmn.cli.policy import decide_table

        return decide_table(arguments)
    if arguments.output is not None:
        raise EvidenceError("--output needs --table; for a single state, use --json")
    model = load(arguments.model)
    state = state_of(model, arguments.state)
    found = _answered(model, state, arguments)
    code = ExitCode.ANSWERED if found[0].best else ExitCode.UNSUPPORTED
    if arguments.json:
        honest = honest_in(model, state, arguments) if found[0].best else None
        more: dict[str, object] = {} if honest is None else {"honest": _honest_facts(honest)}
        choice = choice_of(model, arguments)
        more |= {} if choice is None else {"choice": choice.text}
        actions = [facts for each in found for facts in _facts(each)]
        print(json.dumps({"actions": actions, **more}))
    elif not found[0].best:
        print(_forbidden(found[0].answers) or unsupported(model, state))
    elif arguments.quiet:
        _print_chosen(found)
    else:
        _print(found, model, state, arguments)
    return code


def _answered(model: Model, state: State | None, arguments: Arguments) -> list[Answered]:
    """Return the answers for all decisions that are made before anything else is observed."""
    found: list[Answered] = []
    before: dict[str, Value] = {}
    while True:
        known = {**(state or {}), **before} if before else state
        sure = _how_sure(model, known, arguments)
        answers = (
            model.action_values(known, **options(model, arguments))
            if sure is None
            else [each.action for each in sure.actions]
        )
        found.append(Answered({**before}, _in_order(answers), sure))
        best = found[-1].best
        if not best or not _is_made_now(model.schema, best[0].decision, known or {}):
            return found
        before[best[0].decision] = best[0].value


def _is_made_now(schema: Schema, decision: str, known: State) -> bool:
    """Tell whether another decision follows without anything being observed in between."""
    after = schema.decisions.index(decision) + 1
    if after == len(schema.decisions) or schema.decisions[after] in known:
        return False
    return all(name in known for name in schema.information_sets[after])


def _in_order(answers: Sequence[ActionValue]) -> list[ActionValue]:
    """Return answers, those to choose first, then by what they are worth."""
    rank = {answer.value: place for place, answer in enumerate(best_among(answers))}
    return sorted(
        answers,
        key=lambda a: (
            rank.get(a.value, math.inf),
            math.isnan(a.utility),
            a.known < LEAST_KNOWN,
            0.0 if math.isnan(a.utility) else -a.utility,
        ),
    )


def _facts(found: Answered) -> list[dict[str, Any]]:
    """Return answers as JSON has them."""
    intervals = _intervals(found)
    after = {"after": found.before} if found.before else {}
    return [
        {**after, **_action_facts(a), **_interval_facts(intervals.get(a.value))}
        for a in found.answers
    ]


def _print_chosen(found: Sequence[Answered]) -> None:
    """Print what to choose and nothing else: a value, or NAME=VALUE of several decisions."""
    chosen = [each.best[0] for each in found if each.best]
    for answer in chosen:
        print(answer.value if len(chosen) == 1 else f"{answer.decision}={answer.value}")


def _print(
    found: Sequence[Answered], model: Model, state: State | None, arguments: Arguments
) -> None:
    honest = honest_in(model, state, arguments)
    print_doubts(honest)
    if honest is not None:
        print(f"{honest_line(honest)}; promise {short(honest.promise)}")
    print_choice(model, arguments)
    for each in found:
        if each.before:
            made = ", ".join(f"{name} = {value}" for name, value in each.before.items())
            print(f"with {made}:")
        _print_actions(each, () if honest is None else honest.caveats)
    _print_next(model.schema, found[-1], state or {})
    if not arguments.sure:  # which says it already
        warn_of_unseen(model, state)


def _print_actions(found: Answered, caveats: Sequence[str]) -> None:
    intervals, best = _intervals(found), found.best
    if not best:
        print(_forbidden(found.answers) or "unsupported: the successors are unknown")
        return
    longest = max(12, *(len(str(a.value)) for a in found.answers))
    for a in found.answers:
        worth = f"{short(a.utility):>12}"
        line = f"{'*' if a.best else ' '} {a.decision} = {a.value!s:<{longest}} {worth}"
        print(f"{styled(line, 'best') if a.best else line}{_note(a)}")
        if a.value in intervals and not math.isnan(intervals[a.value].low):
            print(f"    {_shown_interval(intervals[a.value])}")
        for never in a.never_taken:
            print(f"    {never}")
    if best[0].averaged_over:
        print(f"not given: {', '.join(best[0].averaged_over)}; averaged over logged values")
    if found.sure is not None:
        _print_sure(found.sure, caveats)


def _print_next(schema: Schema, last: Answered, known: State) -> None:
    """Say which decision comes next, and what is to be observed before it."""
    decision = last.answers[0].decision
    after = schema.decisions.index(decision) + 1
    if not last.best or after == len(schema.decisions) or schema.decisions[after] in known:
        return
    names = [name for name in schema.information_sets[after] if name not in known]
    be = "is" if len(names) == 1 else "are"
    print(f"next: {schema.decisions[after]}, once {', '.join(names)} {be} observed")


def _intervals(found: Answered) -> dict[Value, ActionInterval]:
    return {} if found.sure is None else {each.action.value: each for each in found.sure.actions}


def _how_sure(
    model: Model, state: dict[str, Value | None] | None, arguments: Arguments
) -> HowSure | None:
    """Return how sure a decision is, if that is asked for."""
    if not arguments.sure:
        return None
    policy = recurrent(model, arguments, "--sure").policy(**options(model, arguments))
    return policy.how_sure(state)


def _print_sure(sure: HowSure, caveats: Sequence[str]) -> None:
    for note in sure.notes:
        if note not in caveats:
            warn(note)
    if sure.too_close:
        rivals = ", ".join(str(each.action.value) for each in sure.rivals)
        print(f"too close to call: {rivals or 'another action'} may be as good")


def _shown_interval(found: ActionInterval) -> str:
    interval = f"{short(found.mean)}, 90 % interval {short(found.low)} to {short(found.high)}"
    return f"{interval}; best with probability {found.best:.2g}"


def _interval_facts(found: ActionInterval | None) -> dict[str, object]:
    if found is None:
        return {}
    numbers = {"mean": found.mean, "low": found.low, "high": found.high, "best": found.best}
    facts = {name: plain(number) for name, number in numbers.items()}
    return {"sure": facts | {"notes": list(found.notes)}}


def _forbidden(answers: Sequence[ActionValue]) -> str:
    """Return that everything is forbidden, and why; nothing if it is not."""
    found = [f"{a.value}: {a.forbidden}" for a in answers if a.forbidden]
    return f"all known actions are forbidden here: {'; '.join(found)}" if found else ""


def _note(answer: ActionValue) -> str:
    """Return what is to be said of how far an answer can be trusted."""
    if answer.forbidden:
        return f"  (forbidden: {answer.forbidden})"
    if not answer.tried:
        return "  (never tried here: extrapolated)"
    if not answer.available:
        return "  (not available)"
    if math.isnan(answer.utility):
        return "  (unsupported: the successors are unknown)"
    notes = [] if answer.practice is None else [f"practice {100 * answer.practice:.0f} %"]
    if answer.available < NEARLY_ALL:
        notes.append(f"available with probability {show_share(answer.available)}")
    return support(answer.steps, answer.supported, *notes)


def _action_facts(answer: ActionValue) -> dict[str, object]:
    return {
        "decision": answer.decision,
        "value": answer.value,
        "utility": plain(answer.utility),
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
        "practice": answer.practice,
    }


# ---- what a state is worth ------------------------------------------------------------


def show_meu(arguments: Arguments) -> int:
    """Print the maximum expected utility."""
    model = load(arguments.model)
    state = state_of(model, arguments.state)
    asked = options(model, arguments)
    # Rules are of a policy; the value of its plain plan is the maximum expected utility with them.
    own = isinstance(model, RSPMN) and asked.keys() > BASIC
    answer = (
        model.policy(**{**asked, "safe": False}).value(state) if own else model.meu(state, **asked)
    )
    honest = honest_in(model, state, arguments)
    if arguments.json:
        facts = {"supported": answer.supported, "steps": answer.steps, "bound": answer.bound}
        more = {} if honest is None else {"honest": _honest_facts(honest)}
        print(json.dumps({"meu": plain(answer), **facts, **more}))
    elif math.isnan(answer):
        print(unsupported(model, state))
    elif arguments.quiet:
        print(f"{float(answer):.6g}")
    else:
        print_doubts(honest)
        near = f" ± {answer.bound:.2g}" if answer.bound > 1e-6 * abs(answer) else ""
        found = f"{short(float(answer))}{near}{support(answer.steps, answer.supported)}"
        print(found if honest is None else f"{honest_line(honest)}\npromise (MEU) {found}")
        warn_of_unseen(model, state)
        print_choice(model, arguments)
    return ExitCode.UNSUPPORTED if math.isnan(answer) else ExitCode.ANSWERED


def _honest_facts(honest: HonestValue) -> dict[str, object]:
    names = ("point", "low", "high", "promise", "optimism", "deviation", "kept")
    facts: dict[str, object] = {name: getattr(honest, name) for name in names}
    return facts | {"caveats": list(honest.caveats)}
