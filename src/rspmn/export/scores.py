"""The formula of a policy over states that are numbers.

A state may be in several interface nodes. How probable each is, is a product of densities; what an
action is worth is the average over them, and the highest is chosen, as in
`rspmn.infer.compiled.mixture`. `Scores` are the numbers in that formula.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from rspmn.availability import label
from rspmn.circuit import Distribution, Leaf, Network, Product, Sum
from rspmn.errors import EvidenceError
from rspmn.infer.base_policy import BasePolicy
from rspmn.infer.constraints import Constraints, Forbidden
from rspmn.infer.criterion import LEAST_KNOWN, MEU, TIE
from rspmn.infer.formulas import Condition, conditions_of
from rspmn.trust.safe_choice import Supported, support_of
from rspmn.values import Mark, Value


@dataclass(frozen=True)
class Scores:
    """What decides in a state, as plain lists."""

    #: Decisions that are made together, one after the other, and the values of each.
    decisions: list[str]
    values: list[list[Value]]
    variables: list[str]
    #: Each is ["leaf", variable, family, *numbers], ["product", children] or ["sum", children,
    #: weights]; children come first.
    nodes: list[list[Any]]
    #: Of each interface node, the nodes whose product it is, its weight, and its point of the
    #: first decision.
    rows: list[tuple[list[int], float, int]]
    #: Of each decision, points: of all values whether it is offered, how much is known, the worth
    #: and the delay, both weighed by that; and the point of the next decision, -1 for none.
    points: list[list[list[list[Any]]]]
    #: What depends on the state: the places of a decision and of a value, the variables, the
    #: formula, and whether it is a law, which says where the value is available; else it says where
    #: the value is forbidden.
    conditions: list[list[Any]]
    least_known: float
    tie: float
    within: float
    otherwise: list[Value] | None
    #: Variables that say whether another is missing, by that one.
    informative: dict[str, str]
    #: Of each decision and point, the logged steps of all values, and how many are enough: so many,
    #: if that is said, or a share of those of the value with most. None if none are needed.
    steps: list[list[list[float]]] | None
    support: tuple[float | None, float] | None

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as JSON has them."""
        return asdict(self)


def scores_of(policy: BasePolicy, t: int = 0) -> Scores:
    """Return the scores of a policy, of decisions that are made before anything else is seen."""
    planned, schema = policy.planned, policy.model.schema
    if len(planned.together) < len(schema.decisions):
        raise EvidenceError(
            "policies over numbers with decisions after further observations cannot be exported"
        )
    always, conditions, support = _conditions(policy)
    index, offers = policy.index, planned.offers
    prior = np.exp(index.prior - index.prior.max())
    interfaces = np.flatnonzero(prior > 0).tolist()
    if (offers.first[interfaces] < 0).any():
        raise EvidenceError("a model with utilities beside its decisions cannot be exported")
    points = _Points(policy, t, always)
    nodes, factors = _factors(index.network, [index.network.roots[each] for each in interfaces])
    rows = [
        (below, _short(prior[each]), points.place(0, int(offers.first[each])))
        for each, below in zip(interfaces, factors, strict=True)
    ]
    return Scores(
        list(planned.together),
        [offers.values(name) for name in planned.together],
        variables_of(policy),
        nodes,
        rows,
        points.found,
        [
            [level, place, each.variables, each.formula, each.is_law]
            for each in conditions
            for level, name in enumerate(planned.together)
            for place, value in enumerate(offers.values(name))
            if (name, label(value)) == (each.decision, each.value)
        ],
        LEAST_KNOWN, TIE, 2 * planned.bound, _otherwise(policy),
        {absence: name for name, absence in schema.informative.items()},
        points.steps if support else None, (support.least, support.share) if support else None,
    )  # fmt: skip


def _otherwise(policy: BasePolicy) -> list[Value] | None:
    """Return what is decided in states that the model never saw, if the policy says it."""
    given = policy.otherwise
    if isinstance(given, Mapping):
        return [given[name] for name in policy.planned.together]
    return None if given is None else [given]


def _not_exported() -> EvidenceError:
    return EvidenceError(
        "policies over numbers with a criterion of your own, or with min_support, cannot be "
        "exported: omit it"
    )


def _conditions(
    policy: BasePolicy,
) -> tuple[set[tuple[str, str]], list[Condition], Supported | None]:
    """Return what a policy must never do, by decision and value, and what it must not by state.

    And which logged steps it needs.
    """
    rules: Sequence[Forbidden] = ()
    criterion, support = policy.criterion, support_of(policy.criterion)
    if isinstance(criterion, Constraints):
        if criterion.min_support:
            raise _not_exported()
        rules, criterion = criterion.forbidden, criterion.criterion
    if criterion is not MEU and support is None:
        raise _not_exported()
    always = {(rule.decision, rule.value) for rule in rules if rule.condition is None}
    by_state = [rule for rule in rules if rule.condition is not None]
    model = policy.model
    return always, conditions_of(model.template, model.schema.laws, by_state), support


class _Points:
    """The numbers of max nodes, those that occur once each."""

    def __init__(self, policy: BasePolicy, t: int, never: set[tuple[str, str]]) -> None:
        planned = policy.planned
        self.offers, self.decisions, self.never = planned.offers, planned.together, never
        self.at = planned.at(planned.after(t), delays=True)
        self.found: list[list[list[list[Any]]]] = [[] for _ in self.decisions]
        self.steps: list[list[list[float]]] = [[] for _ in self.decisions]
        self._places: list[dict[str, int]] = [{} for _ in self.decisions]

    def place(self, level: int, point: int) -> int:
        """Return where the numbers of a max node of a decision are, -1 for none."""
        if point < 0:
            return -1
        numbers, steps = self._numbers(level, point), self._steps(level, point)
        known = self._places[level].setdefault(repr((numbers, steps)), len(self.found[level]))
        if known == len(self.found[level]):
            self.found[level].append(numbers)
            self.steps[level].append(steps)
        return known

    def _steps(self, level: int, point: int) -> list[float]:
        """Return the logged steps of each value of a max node."""
        branches = self.offers.branches(self.decisions[level])[point]
        context = self.offers.context
        steps = context.steps[self.offers.child[branches]]
        return [_short(x) for x in np.where((branches < 0) | np.isinf(steps), 0.0, steps).tolist()]

    def _numbers(self, level: int, point: int) -> list[list[Any]]:
        name = self.decisions[level]
        values, branches = self.offers.values(name), self.offers.branches(name)[point].tolist()
        _, *numbers = self.at.rows(self.offers.branches(name)[[point]])[0].tolist()
        offered, known, worth, delay = (
            [_short(x) for x in numbers[k * len(values) : (k + 1) * len(values)]] for k in range(4)
        )
        may = [(name, label(value)) not in self.never for value in values]
        offered = [int(x > 0 and ok) for x, ok in zip(offered, may, strict=True)]
        if level + 1 == len(self.decisions):
            return [offered, known, worth, delay]
        below = [-1 if b < 0 else int(self.offers.next[b]) for b in branches]
        return [offered, known, worth, delay, [self.place(level + 1, p) for p in below]]


def _short(number: float) -> float:
    """Return a number to twelve digits; ties are of nine."""
    short = float(f"{number:.12g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def _factors(network: Network, roots: Sequence[int]) -> tuple[list[list[Any]], list[list[int]]]:
    """Return the nodes below some roots, and of each root the nodes whose product it is.

    Products of products are one, and nodes without use are left out.
    """
    place: dict[int, int] = {}
    found: list[list[Any]] = []

    def placed(index: int) -> int:
        if index not in place:
            node = network.nodes[index]
            below = [placed(child) for child in node.children]
            place[index] = len(found)
            found.append(_plain(node) if not below else [*_plain(node)[:1], below,
                                                         *_plain(node)[2:]])  # fmt: skip
        return place[index]

    def parts(index: int) -> list[int]:
        node = network.nodes[index]
        if isinstance(node, Product):
            return [part for child in node.children for part in parts(child)]
        return [placed(index)]

    return found, [parts(root) for root in roots]


def variables_of(policy: BasePolicy) -> list[str]:
    """Return the variables by which states differ."""
    nodes = policy.index.network.nodes
    used = {node.variable for node in nodes if isinstance(node, Leaf)}
    return [name for name in policy.index.names if name in used]


def _plain(node: object) -> list[Any]:
    match node:
        case Leaf():
            return ["leaf", node.variable, *_numbers(node.distribution)]
        case Product():
            return ["product", list(node.children)]
        case Sum():
            return ["sum", list(node.children), list(node.weights)]
    raise EvidenceError(f"a node of kind {type(node).__name__} cannot be exported")


def _numbers(distribution: Distribution) -> list[Any]:
    """Return the name of a density's formula, and its numbers."""
    named = distribution.atoms()
    if named is not None:
        pairs = [[v, p] for v, p in named.items() if not isinstance(v, Mark)]
        return ["values", pairs, distribution.unlisted()]
    if distribution.family not in FORMULAS:
        raise EvidenceError(f"leaves of the family {distribution.family} cannot be exported")
    return FORMULAS[distribution.family](distribution)


def _bins(leaf: Any) -> list[Any]:
    pieces = zip(leaf.masses, pairwise(leaf.edges), strict=True)
    return ["bins", list(leaf.edges), [mass / (b - a) for mass, (a, b) in pieces]]


def _student(leaf: Any) -> list[Any]:
    mode = leaf.mode()
    t = (mode - leaf.centre) / leaf.scale  # the bounds may leave the centre out
    height = np.exp(leaf.log_prob(mode)) * (1 + t * t / 4) ** 2.5
    return ["student", leaf.centre, leaf.scale, leaf.low, leaf.high, float(height)]


#: The formula of each family of leaves over numbers.
FORMULAS: dict[str, Callable[[Any], list[Any]]] = {
    "piecewise_linear": lambda leaf: ["linear", list(leaf.knots), list(leaf.densities)],
    "integer_histogram": _bins,
    "student_t": _student,
}
