"""Commands that learn: from a log of episodes, and from a table of past decisions."""

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from time import perf_counter
from typing import Any

from rspmn.cli.framework import Arguments
from rspmn.cli.options import log_options
from rspmn.data.episodes import Episodes, Followed
from rspmn.data.sources.count_windows import StoredWindows, store_windows
from rspmn.data.tables import as_table
from rspmn.errors import DataError
from rspmn.learn import FutureInfo, LearnConfig, RSPMNInfo, learn_rspmn, learn_spmn
from rspmn.learn.irrelevant import listed_by_reason
from rspmn.model import RSPMN
from rspmn.schema import Schema


def learn(arguments: Arguments) -> None:
    """Learn a recurrent model from a log and write it."""
    clock = perf_counter()
    schema = Schema.load(arguments.schema).with_log(**log_options(arguments))
    config = _config(arguments)
    successors = arguments.successors or config.successors
    passes, is_soft = arguments.em_passes, arguments.soft_em
    config = replace(config, em_passes=passes, soft_em=is_soft, successors=successors)
    if config.em_passes and arguments.time_limit is not None:
        raise DataError("--time-limit and --em-passes cannot be combined")
    with store_windows(
        arguments.log, schema, successor=config.successor, time_limit=arguments.time_limit,
        memory_limit=arguments.memory_limit, max_windows=config.max_windows,
    ) as stored:  # fmt: skip
        log = Episodes.from_log(stored.source, schema) if config.em_passes else stored
        progress = False if arguments.json or arguments.quiet else None
        model, info = learn_rspmn(log, config, arguments.seed, progress=progress)
        model.save(arguments.output)
        if arguments.json:
            print(json.dumps({"model": arguments.output, **_facts(info)}))
            return
        if arguments.quiet:
            return
        print(f"{arguments.output}: learned in {perf_counter() - clock:.2f} s")
        for line in (*_story(info, stored), *_never_taken(model)):
            print(line)


def _facts(info: RSPMNInfo) -> dict[str, Any]:
    """Return the fields of the report that can be written as JSON."""
    facts = asdict(replace(info, stages=None, windows_used=None))
    return {name: fact for name, fact in facts.items() if fact is not None}


def _story(info: RSPMNInfo, stored: StoredWindows) -> Iterator[str]:
    """Return lines that say what was learned, and what to be careful about."""
    yield from _about_log(info, stored)
    yield from _about_variables(info)
    yield from _about_missing(info, stored.typed_schema)
    yield from _about_edge(info)
    if isinstance(info.future, FutureInfo) and info.em is None:
        yield from _about_successors(info.future, info.steps)
    if info.untried_branches:
        yield (
            f"untried: {info.untried_branches} decisions were never made in their state; "
            "--allow-untried extrapolates their values from other states"
        )
    if info.em is not None:
        passes = ", ".join(f"{value:.6g}" for value in info.em.log_likelihoods)
        yield f"EM: log-likelihood {passes}"
    if info.structure.stopped_by:
        yield f"stopped early: the limit of {info.structure.stopped_by} was reached"


def _about_log(info: RSPMNInfo, stored: StoredWindows) -> Iterator[str]:
    """Return lines about the size of model and log, and how episodes ended."""
    lengths, limit = stored.lengths, stored.reader.endings.time_limit
    yield (
        f"{info.interfaces} interface nodes, {info.nodes['final']} nodes in all, from "
        f"{info.steps} steps ({info.windows} distinct) of {lengths.episodes} episodes"
    )
    yield (
        f"episodes: {lengths.ended_by(Followed.END)} terminated, "
        f"{lengths.ended_by(Followed.STATE)} truncated with a final state, "
        f"{lengths.ended_by(Followed.UNKNOWN)} truncated without one"
    )
    at_limit = (lengths.endings == Followed.UNKNOWN) & (lengths.lengths == limit)
    went_on = int(lengths.counts[at_limit].sum())
    if went_on:
        yield (
            f"time limit: {went_on} episodes were truncated after {limit} steps; they count as "
            "going on, to a state that is unknown (--time-limit 0: their last steps are left out)"
        )
    if info.sample is not None:
        sample = info.sample
        yield (
            f"sampled: the structure was learned from {sample.share:.2%} of {sample.steps} steps, "
            f"the parameters from all of them ({sample.steps_placed} fit the structure)"
        )


def _about_variables(info: RSPMNInfo) -> Iterator[str]:
    """Return lines about the variables that states differ by, and those that do not matter."""
    if info.numbers.grid:
        boxes = (f"{name} ({len(knots)} knots)" for name, knots in info.numbers.knots.items())
        others = [name for name in info.numbers.relevant if name not in info.numbers.knots]
        yield f"continuous states: soft boxes of {', '.join([*boxes, *others])}"
        for pair in info.numbers.circles:
            yield f"continuous states: {' and '.join(pair)} are cosine and sine of an angle"
    if info.aside:
        them = "it" if len(info.aside) == 1 else "them"
        yield f"ignored: {listed_by_reason(info.aside)}; nothing depends on {them}"


def _about_edge(info: RSPMNInfo) -> Iterator[str]:
    """Return lines about decisions and states at the edge of the log, and beyond it."""
    if info.unsupported_branches:
        yield (
            f"unsupported: {info.unsupported_branches} decisions were only made in steps with an "
            "unknown successor (truncated, or with missing values); they are used only in the last "
            "step of a horizon"
        )
    if info.frontier_states:
        lowest = "they have the lowest value of all states"
        extrapolated = "the effects of decisions there are extrapolated"
        yield (
            f"frontier: {info.frontier_states} states have no decision with a known successor "
            f"({info.frontier_visits} steps led there); "
            f"{lowest if info.all_beyond is None else extrapolated}"
        )
    if info.each_state:
        yield f"each state is an interface node: {info.each_state}"
    if info.beyond:
        left_out = "" if info.all_beyond else "; others were left out"
        yield (
            f"beyond the log: {info.beyond} possible successors were never observed; the effects "
            f"of decisions there are extrapolated{left_out}"
        )


def _about_missing(info: RSPMNInfo, schema: Schema) -> Iterator[str]:
    """Return lines that say which values were missing, and how such steps were counted."""
    if info.lacking:
        shares = [
            f"{name} {steps / info.steps:.1%}" + (" (informative)" * (name in schema.informative))
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


def _never_taken(model: RSPMN) -> Iterator[str]:
    """Return a line about decisions that were never taken somewhere."""
    if model.never_taken:
        most = max(model.never_taken, key=lambda never: never.expected)
        more = len(model.never_taken) - 1
        yield (
            f"never taken: {most.decision} = {most.value} is {most}"
            + (f" (and {_counted(more, 'case')} more)" if more else "")
            + "; if it is impossible, declare that in [available] of the schema"
        )


def _about_successors(info: FutureInfo, steps: int) -> list[str]:
    """Return a line about the estimate of the next state that all branches share."""
    shared = (
        f"a shared estimate ({_counted(len(info.components), 'factor')}, "
        f"{_counted(sum(info.leaves), 'distribution')} for {_counted(info.contexts, 'context')})"
    )
    if info.given_up:
        what = shared if info.components else "a shared estimate"
        return [f"transitions: counts alone; {what} would take {info.given_up}"]
    if not info.components:
        return []
    if not info.strength:
        return [f"transitions: counts alone; {shared} predicts no better"]
    weight = f"the weight of {_counted(info.strength, 'step')} per state"
    if info.strength > steps:
        weight = "more weight than all counts"
    return [
        f"transitions: counts, and {shared} with {weight}; "
        f"{100 * info.outside:.2g} % of its probability is on states never observed"
        + (f"; {_counted(info.spread, 'product')} of factors are not multiplied out"
           if info.spread else "")
    ]  # fmt: skip


def _counted(number: float, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:.6g} {noun}{'' if number == 1 else 's'}"


def learn_single_shot(arguments: Arguments) -> None:
    """Learn a model from a table of past decisions and write it."""
    schema, table = Schema.load(arguments.schema), as_table(arguments.table)
    model, info = learn_spmn(
        table, schema, _config(arguments), arguments.seed, weights=arguments.weights,
        progress=False if arguments.json or arguments.quiet else None,
    )  # fmt: skip
    model.save(arguments.output)
    if arguments.json:
        print(json.dumps({"model": arguments.output, "meu": float(model.meu()), **asdict(info)}))
        return
    if arguments.quiet:
        return
    print(
        f"learned {info.nodes} nodes from {info.rows:g} rows ({info.distinct_rows} distinct) in "
        f"{info.seconds:.2f} s: MEU {float(model.meu()):.6g}"
    )
    if info.stopped_by:
        print(f"stopped early: the limit of {info.stopped_by} was reached")


# ---- what they share -----------------------------------------------------------------


def _config(arguments: Arguments) -> LearnConfig:
    """Return the configuration that the arguments give."""
    config = LearnConfig.paper() if arguments.paper else LearnConfig()
    return replace(
        config,
        availability=arguments.availability or config.availability,
        max_nodes=arguments.max_nodes,
        max_depth=arguments.max_depth,
        max_seconds=arguments.max_seconds,
    )
