"""The data of a page: everything that it shows, as JSON has it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rspmn.circuit import Distribution
from rspmn.data.episodes import Episodes
from rspmn.doctor import Finding
from rspmn.end_nodes import visits_of_states
from rspmn.errors import EvidenceError
from rspmn.explain.text import NodeWords
from rspmn.infer.policy import Policy
from rspmn.model import RSPMN
from rspmn.report.card import coverage_facts, log_facts, model_facts, variable_facts
from rspmn.report.decision_mixtures import TooManyWaysError, Way, ways_to_decisions
from rspmn.report.decision_points import DecisionPoints
from rspmn.report.later_steps import later_steps
from rspmn.report.page_warnings import page_warnings
from rspmn.report.practice_comparison import compared_steps, comparison_of, worth_facts
from rspmn.report.simulated_episodes import played_episodes
from rspmn.report.small_tree import small_tree
from rspmn.spmn import SPMN
from rspmn.trust.safe_choice import support_of
from rspmn.values import Mark, Value, plain, rounded, show

#: The version of the data's form.
FORM = 2
#: Of larger models, so many interface nodes are in the page: the most visited.
MOST_NODES = 1000


def report_data(
    model: RSPMN | SPMN,
    log: Episodes | None = None,
    horizon: int | None = None,
    discount: float = 1.0,
    *,
    findings: Sequence[Finding] = (),
    title: str = "",
    source: str | Path | None = None,
    most_nodes: int = MOST_NODES,
) -> dict[str, Any]:
    """Return everything that the page of a model shows.

    All numbers are those that the policy itself answers with.

    Parameters
    ----------
    model
        The model.
    log
        The log that it was learned from, or another of the same process.
    horizon, discount
        As in `RSPMN.policy`.
    findings
        What `rspmn.doctor.examine` found in the log.
    title
        The title of the page; by default, the name of the model's file.
    source
        The model's file.
    most_nodes
        The most interface nodes in the page.

    Examples
    --------
    >>> from rspmn.envs.frozen_lake import frozen_lake
    >>> from rspmn.learn import learn_rspmn
    >>> data = report_data(learn_rspmn(frozen_lake().generate(500, 8, 0))[0], horizon=8)
    >>> len(data["nodes"]), data["nodes"][0]["decided"]
    (11, {'action': 'down'})
    """
    if most_nodes < 1:
        raise EvidenceError(f"most_nodes: expected 1 or more, found {most_nodes}")
    path = None if source is None else Path(source)
    policy = _policy(model, horizon, discount)
    steps = compared_steps(policy, log)
    comparison = None if log is None else comparison_of(policy, log, steps)
    shown = _Shown(policy, most_nodes)
    nodes, points = shown.nodes(), shown.points
    support = support_of(policy.criterion)
    worth, coverage = worth_facts(policy, comparison, steps), coverage_facts(nodes, points)
    kind = "rspmn" if isinstance(model, RSPMN) else "spmn"
    return {
        "form": FORM,
        "title": title or (path.name if path else "Model"),
        "model": model_facts(policy, kind, path),
        "variables": variable_facts(policy, log),
        "warnings": page_warnings(policy, worth, coverage, shown.no_intervals, findings),
        "worth": worth,
        "coverage": coverage,
        "log": None if log is None else log_facts(log, comparison),
        "leftOut": policy.model.num_state_interfaces - len(nodes),
        "end": policy.model.end,
        "unknown": policy.model.unknown,
        "bound": policy.bound,
        "support": None if support is None else [support.least, support.share],
        "nodes": nodes,
        "noIntervals": shown.no_intervals,
        "points": {str(point): facts for point, facts in points.items()},
        "later": later_steps(policy, points),
        "states": shown.states(),
        "tree": shown.tree(nodes),
        "episodes": played_episodes(policy, steps) if kind == "rspmn" else None,
    }


def _policy(model: RSPMN | SPMN, horizon: int | None, discount: float) -> Policy:
    if isinstance(model, RSPMN):
        return model.policy(horizon, discount)
    if horizon not in (None, 1) or discount != 1:
        raise EvidenceError("a model of single decisions: omit horizon and discount")
    return model.policy()


class _Shown:
    """The interface nodes in a page, and the decisions in them."""

    def __init__(self, policy: Policy, most: int) -> None:
        model = policy.model
        self.policy, self.model = policy, model
        self.visits = visits_of_states(model)
        states = [k for k in range(model.num_interfaces) if k not in (model.end, model.unknown)]
        order = sorted(states, key=lambda k: (-self.visits[k], k))
        self.shown = sorted(order[:most])
        self._points = DecisionPoints(policy)
        self.no_intervals = self._points.no_intervals
        try:
            self.ways = ways_to_decisions(model, policy.planned.offers)
        except TooManyWaysError:
            self.ways = []
        self.certain = _certain_values(self.ways)
        self.points: dict[int, dict[str, Any]] = {}
        self._add_points()

    def _add_points(self) -> None:
        first, shown = self.policy.planned.offers.first, set(self.shown)
        wanted = {int(first[node]) for node in self.shown if first[node] >= 0}
        wanted |= {way.point for way in self.ways if way.node in shown}
        for point in sorted(wanted):
            if self._points.is_state(point):
                sure = self._points.how_sure(point, self.certain.get(point, {}))
                self.points[point] = self._points.facts(point, sure)

    def nodes(self) -> list[dict[str, Any]]:
        """Return the interface nodes that are shown, in their order."""
        words, first = NodeWords(self.model), self.policy.planned.offers.first
        found = []
        for node in self.shown:
            made, value = self.policy.choices(node)
            point = int(first[node])
            facts = self.points.get(point)
            found.append(
                {
                    "id": node,
                    "text": words.text(node),
                    "state": {name: show(v) for name, v in words.values(node).items()},
                    "visits": rounded(self.model.visits[node] if self.model.visits else 0.0),
                    "start": rounded(self.model.starts[node]),
                    "decided": plain(made),
                    "value": plain(value),
                    "steps": rounded(self.policy.steps(node)),
                    "supported": rounded(self.policy.supported(node)),
                    "point": point if facts else None,
                    "tooClose": bool(facts and facts["tooClose"]),
                }
            )
        return found

    def states(self) -> dict[str, Any] | None:
        """Return what finds the decision of any state; None if that is too much for a page."""
        if not self.ways:
            return None
        names = [n for n in self.model.schema.variables if any(n in w.leaves for w in self.ways)]
        leaves: dict[Distribution, int] = {}
        rows: dict[str, list[list[float]]] = {name: [] for name in self.model.schema.decisions}
        for way in self.ways:
            codes = [
                leaves.setdefault(way.leaves[name], len(leaves)) if name in way.leaves else -1
                for name in names
            ]
            rows[self._points.decision(way.point)].append([way.node, way.point, way.weight, *codes])
        return {
            "variables": names,
            "leaves": [plain(_leaf_facts(leaf)) for leaf in leaves],
            "ways": rows,
            "visits": {str(k): v for k, v in enumerate(self.visits.tolist()) if v > 0},
            "starts": {str(k): v for k, v in enumerate(self.model.starts) if v > 0},
            "neverTaken": [
                [n.decision, plain(n.value), n.variable, plain(n.at), str(n)]
                for n in self.model.never_taken
            ],
        }

    def tree(self, nodes: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
        """Return what is decided as a small tree; None if the ways to decisions are too many."""
        names = self.model.schema.information_sets[0]
        decided = {n["id"]: ", ".join(map(show, n["decided"].values())) for n in nodes}
        ways = {(w.node, w.point, *map(w.leaves.get, names)): w for w in self.ways}
        first = self.policy.planned.offers.first
        rows = [w for w in ways.values() if decided.get(w.node) and w.point == first[w.node]]
        if not rows:
            return None
        columns = {name: [_typical(way.leaves.get(name)) for way in rows] for name in names}
        weights = np.array([self.visits[way.node] * way.weight for way in rows])
        return small_tree(columns, [decided[way.node] for way in rows], weights)


def _certain_values(ways: Sequence[Way]) -> dict[int, dict[str, Value]]:
    """Return the variables that have one value at each max node, and that value."""
    found: dict[int, dict[str, Value | None]] = {}
    for way in ways:
        single = {name: _single(leaf) for name, leaf in way.leaves.items()}
        known = found.setdefault(way.point, dict(single))
        for name in [*known]:
            if single.get(name) != known[name]:
                known[name] = None
    return {
        point: {name: value for name, value in known.items() if value is not None}
        for point, known in found.items()
    }


def _single(leaf: Distribution) -> Value | None:
    atoms = leaf.atoms()
    return next(iter(atoms)) if atoms is not None and len(atoms) == 1 else None


def _typical(leaf: Distribution | None) -> Value | None:
    """Return the value that stands for a leaf: its only one, or the mean of its numbers."""
    if leaf is None:
        return None
    atoms = leaf.atoms()
    if atoms is not None:
        return max(atoms, key=atoms.__getitem__)
    mean = leaf.mean()
    return float(f"{mean:.3g}")


def _leaf_facts(leaf: Distribution) -> dict[str, Any]:
    facts = {"family": leaf.family, **json.loads(json.dumps(leaf.to_json(), default=_marked))}
    if leaf.atoms() is None and leaf.pieces() is None:
        mode = leaf.mode()
        facts["log_mode"] = leaf.log_prob(mode)
        facts["mode"] = mode
    return facts


def _marked(value: object) -> str:
    assert isinstance(value, Mark)
    return str(value)
