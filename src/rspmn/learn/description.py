"""What was learned, in words, and what to be careful about."""

from collections.abc import Iterator

from rspmn.learn.info import RSPMNInfo
from rspmn.learn.irrelevant import Reason, listed_by_reason
from rspmn.learn.successors.factored import FutureInfo
from rspmn.learn.successors.likely_states import CUT

#: So many predictions that fail on held-out steps are shown.
MISSES = 5


def description(info: RSPMNInfo) -> Iterator[str]:
    """Return lines that say what was learned, and what to be careful about."""
    yield (
        f"{info.interfaces} interface nodes, {info.nodes['final']} nodes in all, from "
        f"{info.steps} steps ({info.windows} distinct)"
    )
    if info.sample is not None:
        sample = info.sample
        yield (
            f"sampled: the structure was learned from {sample.share:.2%} of {sample.steps} steps, "
            f"the parameters from all of them ({sample.steps_placed} fit the structure)"
        )
    yield from _about_variables(info)
    yield from _about_missing(info)
    yield from _about_edge(info)
    if isinstance(info.future, FutureInfo) and info.em is None:
        yield from _about_successors(info.future, info.steps)
    if info.untried_branches:
        yield (
            f"untried: {info.untried_branches} decisions were left out in their state by chance: "
            "they are offered, with values extrapolated from other states"
        )
    if info.avoided_branches:
        yield (
            f"not offered: {info.avoided_branches} decisions were never made in their state, by "
            "chance or as the logger avoided them there: they are offered only if offer is all"
        )
    if info.em is not None:
        passes = ", ".join(f"{value:.6g}" for value in info.em.log_likelihoods)
        yield f"EM: log-likelihood {passes}"
    if info.structure.stopped_by:
        yield f"stopped early: the limit of {info.structure.stopped_by} was reached"


def _about_variables(info: RSPMNInfo) -> Iterator[str]:
    """Return lines about the variables that states differ by, and those that do not matter."""
    if info.numbers.grid:
        boxes = (f"{name} ({len(knots)} knots)" for name, knots in info.numbers.knots.items())
        others = [name for name in info.numbers.relevant if name not in info.numbers.knots]
        yield f"continuous states: soft boxes of {', '.join([*boxes, *others])}"
        for pair in info.numbers.circles:
            yield f"continuous states: {' and '.join(pair)} are cosine and sine of an angle"
        for miss in info.numbers.misses[:MISSES]:
            yield f"mispredicted: {miss} on held-out steps"
        if len(info.numbers.misses) > MISSES:
            yield f"mispredicted: {len(info.numbers.misses) - MISSES} more, see info.numbers.misses"
    large = [name for name, reason in info.aside.items() if reason is Reason.LARGE]
    aside = {name: reason for name, reason in info.aside.items() if name not in large}
    if aside:
        them = "it" if len(aside) == 1 else "them"
        yield f"ignored: {listed_by_reason(aside)}; nothing depends on {them}"
    if info.uncompared:
        them = "it" if len(info.uncompared) == 1 else "them"
        yield (
            f"not compared: {', '.join(info.uncompared)}: decisions depend on {them}, and the log "
            f"cannot say whether anything else does; if nothing does, ignore {them}"
        )
    if large:
        yield (
            f"ignored: {', '.join(large)}, although what follows depends on it: states that differ "
            "by it too would be too many; group its values, or use a longer log"
        )


def _about_missing(info: RSPMNInfo) -> Iterator[str]:
    """Return lines that say which values were missing, and how such steps were counted."""
    if info.lacking:
        informative = info.windows_used.schema.informative if info.windows_used else ()
        shares = [
            f"{name} {steps / info.steps:.1%}" + (" (informative)" * (name in informative))
            for name, steps in info.lacking.items()
        ]
        yield f"missing values: {', '.join(shares)} of {info.steps} steps"
    if info.steps_completed:
        yield (
            f"imputed: missing values of {info.steps_completed} steps or their successors were "
            "drawn from their distribution in the log"
        )
    if info.steps_shared:
        yield (
            f"shared: {info.steps_shared} steps with missing values are divided among the "
            "interface nodes that agree with their known values"
        )
    if info.steps_left_out:
        yield (
            f"left out: {info.steps_left_out} steps agree with no interface node in which their "
            "decisions were made"
        )
    if info.steps_doubtful:
        yield (
            f"ambiguous: the transitions of {info.steps_doubtful} steps with missing values before "
            "and after, which agree with no other step, are not counted"
        )


def _about_edge(info: RSPMNInfo) -> Iterator[str]:
    """Return lines about decisions and states at the edge of the log, and beyond it."""
    if info.cut is not None:
        yield (
            f"cut steps: {info.cut}; what they earn is not counted. Declare which episodes "
            "terminated, or log the state that followed"
        )
    if info.unsupported_branches:
        yield (
            f"unsupported: {info.unsupported_branches} decisions were only made in steps with an "
            "unknown successor (truncated, or with missing values); they are used only in the last "
            "step of a horizon"
        )
    if info.frontier_states:
        known = info.frontier_extrapolated
        there = "there" if known == info.frontier_states else f"in {known} of them"
        said = f"the effects of decisions {there} are extrapolated" if known else ""
        if known < info.frontier_states:
            said += f"{'; the others' if known else 'they'} have the lowest value of all states"
        yield (
            f"frontier: {info.frontier_states} states have no decision with a known successor "
            f"({info.frontier_visits} steps led there); {said}"
        )
    if info.each_state:
        yield f"each state is an interface node: {info.each_state}"
    not_examined = f"{100 * info.cut_beyond:.3g} % of what may follow was not examined"
    if not info.beyond and info.cut_beyond > 10 * CUT:
        yield f"beyond the log: {not_examined}: there are too many possible successors"
    if info.beyond:
        left_out = "" if info.all_beyond else "; others were left out"
        if info.cut_beyond > 10 * CUT:
            left_out += f"; {not_examined}"
        yield (
            f"beyond the log: {info.beyond} possible successors were never observed; the effects "
            f"of decisions there are extrapolated{left_out}"
        )


def _about_successors(info: FutureInfo, steps: int) -> list[str]:
    """Return a line about the estimate of the next state that all branches share."""
    shared = (
        f"a shared estimate ({counted(len(info.components), 'factor')}, "
        f"{counted(sum(info.leaves), 'distribution')} for {counted(info.contexts, 'context')})"
    )
    if info.given_up:
        what = shared if info.components else "a shared estimate"
        return [f"transitions: counts alone; {what} would take {info.given_up}"]
    if not info.components:
        return []
    if not info.strength:
        return [f"transitions: counts alone; {shared} predicts no better"]
    weight = f"the weight of {counted(info.strength, 'step')} per state"
    if info.strength > steps:
        weight = "more weight than all counts"
    return [
        f"transitions: counts, and {shared} with {weight}; "
        f"{100 * info.outside:.2g} % of its probability is on states never observed"
        + (f"; {counted(info.spread, 'product')} of factors are not multiplied out"
           if info.spread else "")
        + (f"; {100 * info.cut:.2g} % was cut: that of the least probable states"
           if info.cut > CUT else "")
    ]  # fmt: skip


def counted(number: float, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:.6g} {noun}{'' if number == 1 else 's'}"
