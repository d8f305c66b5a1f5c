"""Commands about logs: learning from them, asking how likely they are, drawing them."""

import argparse
import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from time import perf_counter
from typing import Any

import numpy as np

from rspmn.cli.learning import config_of
from rspmn.cli.progress import learning_bar
from rspmn.data.episodes import Episodes, Followed
from rspmn.data.sources.count_windows import StoredWindows, store_windows
from rspmn.errors import DataError, ModelFileError
from rspmn.files import write_atomically
from rspmn.learn import FutureInfo, RSPMNInfo, learn_rspmn
from rspmn.log_format import LogOptions
from rspmn.model_file import load_rspmn
from rspmn.schema import Schema


def learn(arguments: argparse.Namespace) -> None:
    """Learn a recurrent model from a log and write it."""
    clock = perf_counter()
    schema = Schema.load(arguments.schema).with_log(**log_options(arguments))
    config = config_of(arguments)
    config = replace(
        config,
        em_passes=arguments.em_passes,
        soft_em=arguments.soft_em,
        successors=arguments.successors or config.successors,
    )
    if config.em_passes and arguments.time_limit is not None:
        raise DataError("--time-limit and --em-passes do not go together: pass one of them")
    options: Any = {"successor": config.successor, "time_limit": arguments.time_limit}
    with store_windows(
        arguments.log, schema, memory_limit=arguments.memory_limit, **options
    ) as stored:
        log = Episodes.from_log(stored.source, schema) if config.em_passes else stored
        with learning_bar(arguments.json) as report:
            model, info = learn_rspmn(log, config, arguments.seed, report=report)
        model.save(arguments.output)
        if arguments.json:
            print(json.dumps({"model": arguments.output, **_facts(info)}))
            return
        print(f"{arguments.output}: learned in {perf_counter() - clock:.2f} s")
        for line in _story(info, stored):
            print(line)


def _facts(info: RSPMNInfo) -> dict[str, Any]:
    """Return what happened as plain numbers."""
    facts = asdict(replace(info, stages=None, windows_used=None))
    return {name: fact for name, fact in facts.items() if fact is not None}


def _story(info: RSPMNInfo, stored: StoredWindows) -> list[str]:
    """Tell a person what was learned, and what to be careful about."""
    lengths, limit = stored.lengths, stored.reader.endings.time_limit
    lines = [
        f"{info.interfaces} interface nodes, {info.nodes['final']} nodes in all, from "
        f"{info.steps} steps ({info.windows} distinct) of {lengths.episodes} episodes",
        f"episodes ended: {lengths.ended_by(Followed.END)} for good, "
        f"{lengths.ended_by(Followed.STATE)} in a state that was kept, "
        f"{lengths.ended_by(Followed.UNKNOWN)} cut",
    ]
    late = int(lengths.counts[(lengths.endings == Followed.END) & (lengths.lengths == limit)].sum())
    if late:
        lines.append(
            f"time limit: {limit} steps, where episodes were cut; of {late} that terminated in "
            "that step it counts as unknown what followed (--time-limit 0: as the end)"
        )
    if info.sample is not None:
        sample = info.sample
        lines.append(
            f"sampled: the structure is learned from {sample.share:.2%} of {sample.steps} steps, "
            f"the parameters from all of them ({sample.steps_placed} have a place in it)"
        )
    if info.steps_left_out:
        lines.append(f"left out: {info.steps_left_out} steps with missing values")
    if info.steps_doubtful:
        lines.append(
            f"doubtful: {info.steps_doubtful} steps lead to a state that lacks values and may be "
            "in several interface nodes; they are not counted"
        )
    if info.unsupported_branches:
        lines.append(
            f"unsupported: {info.unsupported_branches} decisions were only made in steps with an "
            "unknown successor (cut, or lacking values); they count in the last step of a horizon "
            "only"
        )
    if info.frontier_states:
        lines.append(
            f"frontier: in {info.frontier_states} states nothing is known to follow any decision; "
            f"{info.frontier_visits} steps led there; they are taken as the worst of all"
        )
    if isinstance(info.future, FutureInfo) and info.em is None:
        lines += _about_successors(info.future, info.steps)
    if info.untried_branches:
        lines.append(
            f"untried: {info.untried_branches} decisions were never made in their state; "
            "--allow-untried values them by what they did elsewhere"
        )
    if info.em is not None:
        passes = ", ".join(f"{value:.6g}" for value in info.em.log_likelihoods)
        lines.append(f"EM: log-likelihood {passes}")
    if info.structure.stopped_by:
        lines.append(f"stopped early: the limit of {info.structure.stopped_by} was reached")
    return lines


def _about_successors(info: FutureInfo, steps: int) -> list[str]:
    sizes = ", ".join(map(str, info.leaves))
    kinds = f"{len(info.components)} components of {sizes} distributions"
    if info.given_up:
        what = kinds if info.components else "factors"
        return [f"successors: counts alone; {what} would take {info.given_up}"]
    if not info.components:
        return []
    if not info.strength:
        return [f"successors: counts alone; {kinds} for {info.contexts} contexts predict no better"]
    weight = f"as much as {info.strength:g} steps in every state"
    if info.strength > steps:
        weight = "more than all counts together"
    return [
        f"successors: {kinds} for {info.contexts} contexts weigh {weight}; "
        f"{100 * info.outside:.2g} % of their mass is on states never seen"
    ]


def show_policy(arguments: argparse.Namespace) -> None:
    """Write the best decision of every interface node as a table."""
    model = load_rspmn(arguments.model)
    untried = arguments.allow_untried
    policy = model.policy(arguments.horizon, arguments.discount, allow_untried=untried)
    table = policy.table(arguments.t)
    if arguments.output:
        _write(arguments.output, table)
        if not arguments.json:
            print(f"{arguments.output}: {len(table['node'])} interface nodes")
            return
    if arguments.json:
        names = list(table)
        rows = zip(*table.values(), strict=True)
        print(json.dumps([dict(zip(names, map(_plain, row), strict=True)) for row in rows]))
        return
    print_table(table)


def show_likelihood(arguments: argparse.Namespace) -> None:
    """Say how likely the episodes of a log are."""
    model = load_rspmn(arguments.model)
    episodes = Episodes.from_log(arguments.log, model.schema, **log_options(arguments))
    found = model.log_likelihood(episodes)
    impossible = int(np.isneginf(model.log_likelihood(episodes, smoothed=False)).sum())
    if arguments.output:
        _write(arguments.output, {"episode": episodes.ids.tolist(), "loglik": found.tolist()})
    facts = {
        "episodes": len(episodes),
        "mean": float(found.mean()),
        "per_step": float(found.sum() / episodes.num_steps),
        "unseen": impossible,
    }
    if arguments.json:
        print(json.dumps(facts))
        return
    print(
        f"log-likelihood {facts['mean']:.6g} per episode, {facts['per_step']:.6g} per step, over "
        f"{len(episodes)} episodes"
    )
    if impossible:
        print(f"{impossible} of them hold a step that the model never saw (smoothed)")


def sample(arguments: argparse.Namespace) -> None:
    """Draw episodes from a model."""
    model = load_rspmn(arguments.model)
    untried = arguments.allow_untried
    best = None
    if arguments.best:
        best = model.policy(arguments.horizon, arguments.discount, allow_untried=untried)
    elif untried:
        raise DataError("--allow-untried is for --best: without it decisions are drawn at random")
    log = model.sample(arguments.episodes, arguments.horizon, arguments.seed, best)
    table = log.to_long()
    _write(arguments.output, table)
    returns = np.add.reduceat(log.columns[model.schema.utility].data, log.offsets[:-1])
    facts = {"episodes": len(log), "steps": log.num_steps, "mean_return": float(returns.mean())}
    if arguments.json:
        print(json.dumps({"file": arguments.output, **facts}))
    else:
        print(
            f"{arguments.output}: {len(log)} episodes, {log.num_steps} steps, "
            f"mean return {facts['mean_return']:.6g}"
        )


# ---- what they share -----------------------------------------------------------------


def log_options(arguments: argparse.Namespace) -> LogOptions:
    """Return what the arguments say of the format of a log; the schema or model says the rest."""
    found: LogOptions = {}
    if arguments.episode is not None:
        found["episode"] = arguments.episode
    if arguments.time is not None or arguments.in_order:
        found["time"] = None if arguments.in_order else arguments.time
    if arguments.terminated is not None:
        found["terminated"] = arguments.terminated
    if arguments.ending is not None:
        found["ending"] = arguments.ending
    if arguments.gaps is not None:
        found["gaps"] = "allow" if arguments.gaps else "error"
    if arguments.wide is not None:
        found["wide"] = arguments.wide
    return found


def _write(path: str, table: Mapping[str, Sequence[Any]]) -> None:
    """Write a table as CSV, whole or not at all."""
    if not path.endswith(".csv"):
        raise ModelFileError(f"{path}: expected a name ending in .csv")
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(table)
    writer.writerows(
        ["" if value is None else value for value in row]
        for row in zip(*table.values(), strict=True)
    )
    try:
        write_atomically(path, text.getvalue().encode())
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be written: {error.strerror}") from None


def print_table(table: Mapping[str, Sequence[Any]]) -> None:
    """Print columns beside each other."""
    cells = [[name, *map(_shown, column)] for name, column in table.items()]
    widths = [max(map(len, column)) for column in cells]
    for row in zip(*cells, strict=True):
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else str(value)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
