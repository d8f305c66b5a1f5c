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
from rspmn.learn import LearnConfig, RSPMNInfo, learn_rspmn, learn_spmn
from rspmn.learn.description import counted, description
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
        for line in (*_about_log(stored), *description(info), *_never_taken(model)):
            print(line)


def _facts(info: RSPMNInfo) -> dict[str, Any]:
    """Return the fields of the report that can be written as JSON."""
    facts = asdict(replace(info, stages=None, windows_used=None))
    return {name: fact for name, fact in facts.items() if fact is not None}


def _about_log(stored: StoredWindows) -> Iterator[str]:
    """Return lines about how episodes ended."""
    lengths, limit = stored.lengths, stored.reader.endings.time_limit
    yield (
        f"{lengths.episodes} episodes: {lengths.ended_by(Followed.END)} terminated, "
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


def _never_taken(model: RSPMN) -> Iterator[str]:
    """Return a line about decisions that were never taken somewhere."""
    if model.never_taken:
        most = max(model.never_taken, key=lambda never: never.expected)
        more = len(model.never_taken) - 1
        yield (
            f"never taken: {most.decision} = {most.value} is {most}"
            + (f" (and {counted(more, 'case')} more)" if more else "")
            + "; if it is impossible, declare that in [available] of the schema"
        )


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
        keep=arguments.keep or config.keep,
        ignore=arguments.ignore or config.ignore,
        max_nodes=arguments.max_nodes,
        max_depth=arguments.max_depth,
        max_seconds=arguments.max_seconds,
    )
