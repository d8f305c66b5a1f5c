"""What a model was learned from, its variables, and how well the log covers it."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rspmn import __version__
from rspmn.data.episodes import Episodes, Followed
from rspmn.evaluate.comparison import Comparison
from rspmn.explain.changes import Values
from rspmn.infer.formulas import conditions_of
from rspmn.infer.policy import Policy
from rspmn.trust.unseen import LoggedValues
from rspmn.values import plain, rounded, show

#: So many values of a variable are listed, and so many interface nodes where practice differs.
LISTED, DIFFERENT = 60, 12
#: A recommendation that fewer logged steps support is a guess.
FEW = 10


def model_facts(policy: Policy, kind: str, source: Path | None) -> dict[str, Any]:
    """Return what a model is, and the file that it is in."""
    model = policy.model
    facts: dict[str, Any] = {
        "kind": kind,
        "version": __version__,
        "decisions": list(model.schema.decisions),
        "utility": model.schema.utility,
        "setAside": list(model.set_aside),
        "interfaceNodes": model.num_state_interfaces,
        "templateNodes": len(model.template),
        "loggedSteps": rounded(float(sum(model.visits))),
        "ends": model.end is not None and kind == "rspmn",
        "horizon": policy.horizon,
        "discount": policy.discount,
        "laws": [f"{law.decision} = {law.value} only if {law.condition}"
                 for law in model.schema.laws],
        "conditions": [c.to_dict() for c in conditions_of(model.template, model.schema.laws)],
    }  # fmt: skip
    if source is not None:
        content = source.read_bytes()
        facts["file"] = source.name
        facts["bytes"] = len(content)
        facts["sha256"] = hashlib.sha256(content).hexdigest()
    return facts


def variable_facts(policy: Policy, log: Episodes | None = None) -> list[dict[str, Any]]:
    """Return every variable of a step: its part, its kind, its values.

    Numbers have the range that a log has; without one, that of the model's leaves.
    """
    schema, values, logged = policy.model.schema, Values(policy), LoggedValues(policy.model)
    sets, found = schema.information_sets, []
    for name in schema.variables:
        kind = schema.kinds.get(name)
        facts: dict[str, Any] = {"name": name, "kind": "" if kind is None else str(kind)}
        facts["part"] = (
            "decision" if name in schema.decisions
            else "utility" if name == schema.utility
            else "state" if name in sets[0]
            else "later"
        )  # fmt: skip
        if facts["part"] == "decision":
            facts["values"] = plain(policy.planned.offers.values(name))
        elif facts["part"] != "utility":
            facts |= _values_of(values, logged, name)
            if log is not None and name in log.columns and "low" in facts:
                facts |= _range_in(log, name)
        found.append(facts)
    return found


def _values_of(values: Values, logged: LoggedValues, name: str) -> dict[str, Any]:
    tried = values.tried(name)
    if not values.is_number(name):
        try:
            tried = sorted(tried)  # type: ignore[type-var]
        except TypeError:  # numbers and texts
            tried = sorted(tried, key=show)
        return {"values": plain(tried)}
    low, high = logged.range(name)
    numbers = [float(v) for v in tried if isinstance(v, int | float) and low <= v <= high]
    line = numbers[:: max(1, len(numbers) // (2 * LISTED))]
    return {"low": low, "high": high, "tried": line}


def _range_in(log: Episodes, name: str) -> dict[str, float]:
    """Return the range of a number in a log; nothing if it was never logged."""
    numbers = log.columns[name].numbers()
    known = numbers[~np.isnan(numbers)]
    return {"low": float(known.min()), "high": float(known.max())} if len(known) else {}


def coverage_facts(
    nodes: Sequence[Mapping[str, Any]], points: Mapping[int, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return how many logged steps support what is recommended, by interface nodes."""
    visits = np.array([node["visits"] for node in nodes], dtype=float)
    steps = np.array([node["steps"] or 0.0 for node in nodes])
    actions = [len(points[n["point"]]["actions"]) if n["point"] in points else 0 for n in nodes]
    total = max(float(visits.sum()), 1e-300)
    few = steps < FEW
    close = np.array([node["tooClose"] for node in nodes], dtype=bool)
    nowhere = np.array([not node["decided"] for node in nodes], dtype=bool)
    return {
        "visits": _spread(visits),
        "stepsBehindRecommendation": _spread(steps),
        "few": FEW,
        "nodesWithFew": int(few.sum()),
        "shareWithFew": rounded(float(visits[few].sum()) / total),
        "nodesTooClose": int(close.sum()),
        "shareTooClose": rounded(float(visits[close].sum()) / total),
        "nodesWithoutDecision": int(nowhere.sum()),
        "actionsPerNode": rounded(float(np.mean(actions))) if actions else None,
    }


def _spread(numbers: Any) -> dict[str, float | None]:
    if not len(numbers):
        return {}
    quantiles = np.quantile(numbers, [0, 0.25, 0.5, 0.75, 1]).tolist()
    return dict(zip(("least", "lower", "median", "upper", "most"), map(rounded, quantiles)))  # noqa: B905


def log_facts(log: Episodes, found: Comparison | None) -> dict[str, Any]:
    """Return what a log holds: episodes, their ends, decisions, and where practice differs."""
    lengths = log.lengths
    facts: dict[str, Any] = {
        "episodes": len(log),
        "steps": log.num_steps,
        "lengths": _spread(lengths),
        "endings": {
            "terminated": int((log.endings == Followed.END).sum()),
            "truncated with a final state": int((log.endings == Followed.STATE).sum()),
            "truncated": int((log.endings == Followed.UNKNOWN).sum()),
        },
        "decisions": {name: _counts(log, name) for name in log.schema.decisions},
    }
    if found is not None:
        facts["differs"] = plain([
            {
                "state": {name: show(value) for name, value in each.state.items()},
                "visits": each.visits,
                "practice": each.practice,
                "practiceShare": each.practice_share,
                "recommended": each.recommended,
                "agreement": each.agreement,
                "gain": each.gain,
                "gainPerVisit": each.gain_per_visit(found.episodes),
            }
            for each in found.nodes[:DIFFERENT]
            if math.isfinite(each.gain)
        ])  # fmt: skip
    return facts


def _counts(log: Episodes, name: str) -> list[dict[str, Any]]:
    column = log.columns[name]
    counts = np.bincount(column.data[column.data >= 0], minlength=len(column.domain)).tolist()
    pairs = zip(column.domain, counts, strict=True)
    return [{"value": plain(value), "steps": count} for value, count in pairs if count]
