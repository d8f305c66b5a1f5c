"""The command that evaluates policies on a log."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from rspmn.cli.console import print_table
from rspmn.cli.framework import Arguments
from rspmn.cli.options import log_options
from rspmn.data.episodes import Episodes
from rspmn.data.single_decisions import single_decisions
from rspmn.data.tables import as_table
from rspmn.errors import DataError, EvidenceError
from rspmn.evaluate.comparison import Comparison, NodeComparison, compare
from rspmn.evaluate.off_policy import OffPolicy, off_policy
from rspmn.model import RSPMN
from rspmn.model_file import load
from rspmn.schema import Kind, Schema
from rspmn.spmn import SPMN
from rspmn.types import Array
from rspmn.values import plain, short, show, unused


def evaluate(arguments: Arguments) -> None:
    """Print what a policy is worth, or the recommended one beside current practice."""
    model = load(arguments.model)
    log, behaviour = _read(model, arguments)
    options = {"draws": arguments.draws, "rng": arguments.seed, "level": arguments.level}
    horizon, discount = arguments.horizon, arguments.discount
    if arguments.policy is None:
        if behaviour is not None:
            raise EvidenceError("--probability needs --policy; practice is evaluated in the model")
        found = compare(model, log, horizon, discount, **options)
        _show_comparison(found, arguments)
        return
    answer = off_policy(
        model, log, arguments.policy, horizon, discount, behaviour=behaviour, **options
    )
    _show_estimates(answer, arguments)


def _read(model: RSPMN | SPMN, arguments: Arguments) -> tuple[Episodes, Array | None]:
    """Read the log, and the probabilities of its decisions where a column has them."""
    schema, column, options = model.schema, arguments.probability, log_options(arguments)
    if isinstance(model, SPMN):
        if options:
            raise EvidenceError(
                f"{arguments.model} is a model of single decisions: omit {', '.join(options)}"
            )
        table = as_table(arguments.log)
        given = None if column is None else table.coded(column, Kind.CONTINUOUS).numbers()
        return single_decisions(table, schema, arguments.weights), given
    if arguments.weights is not None:
        raise EvidenceError(f"{arguments.model} is a model of episodes: omit --weights")
    if column is None or column in schema.variables:
        log = Episodes.from_log(arguments.log, schema, **options)
        return log, None if column is None else log.columns[column].numbers()
    wider = Schema(
        [*schema.order, [column]], schema.decisions, schema.utility,
        {**schema.kinds, column: Kind.CONTINUOUS}, schema.log, schema.available,
    )  # fmt: skip
    log = Episodes.from_log(arguments.log, wider, **options)
    columns = {name: log.columns[name] for name in schema.variables}
    kinds = {name: log.schema.kinds[name] for name in schema.variables}
    given = log.columns[column].numbers()
    return replace(log, schema=schema.with_kinds(kinds), columns=columns), given


# ---- practice and recommendation --------------------------------------------------------------


def _show_comparison(found: Comparison, arguments: Arguments) -> None:
    if arguments.top < 0:
        raise DataError(f"--top: expected 0 or more, found {arguments.top}")
    nodes = found.nodes[: arguments.top]
    if arguments.json:
        facts = asdict(replace(found, nodes=nodes))
        print(json.dumps(plain(facts)))
        return
    print(f"{found.horizon} steps, {found.episodes} logged episodes; {_intervals(found.level)}")
    policy, logged = found.policy, found.logged
    lines = [
        ("current practice", found.practice.value, found.practice.low, found.practice.high),
        ("recommended policy", policy.point, policy.low, policy.high),
        ("difference", found.difference.value, found.difference.low, found.difference.high),
    ]
    if logged is not None:
        lines.insert(0, ("logged episodes", logged.value, logged.low, logged.high))
    names = ("", "value", "low", "high")
    print_table({name: [line[k] for line in lines] for k, name in enumerate(names)})
    print(
        f"the model promises {short(policy.promise)} of the policy; it is better than current "
        f"practice with probability {found.better:.3g}"
    )
    if found.choice is not None:
        print(f"recommended: {found.choice.text}")
    print(f"the recommended action was taken in {found.agreement:.1%} of the logged steps")
    if nodes:
        print("\nlargest differences:")
        print_table(_table(nodes, found.episodes))
    for note in found.notes:
        print(f"note: {note}")


def _table(nodes: Sequence[NodeComparison], episodes: int) -> dict[str, list[Any]]:
    states = {name: [show(node.state[name]) for node in nodes] for name in nodes[0].state}
    facts: dict[str, list[Any]] = {
        "visits": [round(node.visits) for node in nodes],
        "practice": [f"{node.practice} ({node.practice_share:.0%})" for node in nodes],
        "recommended": [node.recommended for node in nodes],
        "agree": [f"{node.agreement:.0%}" for node in nodes],
        "gain per visit": [node.gain_per_visit(episodes) for node in nodes],
        "per episode": [node.gain for node in nodes],
    }
    return states | {unused(name, states): column for name, column in facts.items()}


# ---- any policy -------------------------------------------------------------------------------


def _show_estimates(found: OffPolicy, arguments: Arguments) -> None:
    if arguments.json:
        print(json.dumps(plain(asdict(found))))
        return
    print(f"policy {arguments.policy}: {found.horizon} steps, {found.episodes} logged episodes; "
          f"{_intervals(found.level)}")  # fmt: skip
    estimates = found.estimates
    print_table({
        "method": [e.method for e in estimates],
        "value": [e.value for e in estimates],
        "low": [e.low for e in estimates],
        "high": [e.high for e in estimates],
        "effective episodes": ["" if math.isnan(e.effective) else f"{e.effective:.3g}"
                               for e in estimates],
    })  # fmt: skip
    print(f"coverage {found.coverage:.2%}")
    column = f"from the column {arguments.probability}"
    source = column if found.behaviour_given else "estimated from the log"
    print(f"probabilities of logged decisions: {source}")
    for note in found.notes:
        print(f"note: {note}")


def _intervals(level: float) -> str:
    return f"{100 * level:g} % intervals"
