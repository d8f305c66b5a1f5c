"""What a reader must know before believing a page: warnings, the gravest first."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rspmn.doctor import Finding
from rspmn.infer.policy import Policy
from rspmn.model import RSPMN
from rspmn.trust.safe_choice import SafeChoice

#: A share of logged steps from which a doubt about nodes is a warning, not a note.
MANY = 0.1

Warned = dict[str, str]


def page_warnings(
    policy: Policy,
    worth: Mapping[str, Any],
    coverage: Mapping[str, Any],
    no_intervals: str = "",
    findings: Sequence[Finding] = (),
) -> list[Warned]:
    """Return warnings and notes: each has a level, what is the case, and what to do."""
    found = [
        *_of_values(worth),
        *_of_intervals(no_intervals),
        *_of_coverage(coverage),
        *(_warned(f.level, f"{f.found}", f.advice) for f in findings),
        *_of_choice(policy.choice),
        *_of_model(policy.model),
    ]
    order = {"error": 0, "warning": 1, "note": 2}
    return sorted(found, key=lambda each: order[each["level"]])


def _of_values(worth: Mapping[str, Any]) -> Iterator[Warned]:
    policy, gap = worth["policy"], worth["difference"]
    if policy is None:
        yield _warned(
            "warning",
            "The value of the policy has no interval: the model has no counts of logged steps",
            "It is a maximum over many estimates and therefore too optimistic",
        )
        return
    for caveat in policy["caveats"]:
        yield _warned("warning", caveat, "The interval of the policy's value may be wrong")
    if policy["promise"] is None or policy["point"] is None:
        yield _warned(
            "warning",
            "The value of the policy is not known: nothing is known of what follows",
            "Log the state after the last step of each episode, and why it ended",
        )
    elif not policy["kept"]:
        yield _warned(
            "warning",
            f"The MEU is {policy['promise']:.4g}, but the log supports only {policy['point']:.4g}",
            "Use the honest value, and log more episodes in the states of the policy",
        )
    if gap is not None and gap["low"] <= 0:
        yield _warned(
            "warning",
            "The log does not show that the policy is better than current practice: the interval "
            f"of the difference is {gap['low']:.4g} to {gap['high']:.4g}",
            "Do not replace current practice on this evidence alone",
        )


def _of_choice(choice: SafeChoice | None) -> Iterator[Warned]:
    if choice is not None and choice.chosen:
        yield _warned(
            "note",
            f"Recommended: {choice.text}",
            f"The log does not support that {choice.names[0]} is better",
        )


def _of_intervals(no_intervals: str) -> Iterator[Warned]:
    if no_intervals:
        yield _warned(
            "warning",
            f"Actions have no intervals: {no_intervals}",
            "The uncertainty of the decisions is unknown",
        )


def _of_coverage(coverage: Mapping[str, Any]) -> Iterator[Warned]:
    few, share = coverage["nodesWithFew"], coverage["shareWithFew"] or 0.0
    if few:
        yield _warned(
            "warning" if share > MANY else "note",
            f"In {few} interface nodes, with {_percent(share)} of all logged steps, the "
            f"recommended action was logged fewer than {coverage['few']} times",
            "The recommendation is a guess there; see the column “steps” of the policy",
        )
    close, share = coverage["nodesTooClose"], coverage["shareTooClose"] or 0.0
    if close:
        yield _warned(
            "warning" if share > MANY else "note",
            f"In {close} interface nodes, with {_percent(share)} of all logged steps, the decision "
            "is too close to call: another action may be better",
            "The choice matters little there, or the log is too short",
        )
    if coverage["nodesWithoutDecision"]:
        yield _warned(
            "note",
            f"In {coverage['nodesWithoutDecision']} interface nodes no decision with a known "
            "outcome was logged: the policy is not defined there",
            "Decide by other means there",
        )


def _of_model(model: RSPMN) -> Iterator[Warned]:
    for name in model.set_aside:
        yield _warned(
            "note",
            f"{name} is ignored: nothing in the log depends on it",
            "If it should matter, it may not vary enough in the log",
        )
    if model.never_taken:
        yield _warned(
            "note",
            f"{len(model.never_taken)} combinations of an action and a value of the state were "
            "never logged, although they were expected",
            "They are listed with the actions",
        )


def _percent(share: float) -> str:
    """Return a share in percent, but never 0 % of something.

    >>> _percent(0.57), _percent(0.001)
    ('57 %', 'less than 1 %')
    """
    return "less than 1 %" if share < 0.005 else f"{100 * share:.0f} %"


def _warned(level: str, text: str, advice: str) -> Warned:
    return {"level": level, "text": text, "advice": advice}
