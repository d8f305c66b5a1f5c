"""The formula of a policy over states that are numbers.

A state may be in several interface nodes. How probable each is, is a product of densities; what an
action is worth is the average over them, and the highest is chosen, as in
`rspmn.infer.compiled.mixture`. `Scores` are the numbers in that formula.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from rspmn.circuit import Distribution, Leaf, Product, Sum
from rspmn.errors import EvidenceError
from rspmn.infer.base_policy import BasePolicy
from rspmn.infer.criterion import LEAST_KNOWN, MEU, TIE
from rspmn.values import Mark, Value


@dataclass(frozen=True)
class Scores:
    """What decides in a state, as plain lists."""

    decision: str
    variables: list[str]
    values: list[Value]
    #: Each is ["leaf", variable, family, *numbers], ["product", children] or ["sum", children,
    #: weights]; children come first.
    nodes: list[list[Any]]
    #: Of each interface node, its node, its weight, and of all values whether it is offered, how
    #: much is known, the worth and the delay, both weighed by that.
    rows: list[list[Any]]
    least_known: float
    tie: float
    within: float
    otherwise: Value | None
    #: Variables that say whether another is missing, by that one.
    informative: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as JSON has them."""
        return asdict(self)


def scores_of(policy: BasePolicy, t: int = 0) -> Scores:
    """Return the scores of a policy of one decision."""
    planned, schema = policy.planned, policy.model.schema
    if len(planned.together) > 1 or isinstance(policy.otherwise, dict):
        raise EvidenceError("several decisions on numbers cannot be written as a formula")
    if policy.criterion is not MEU:
        raise EvidenceError("rules and caution on numbers cannot be written as a formula")
    if schema.laws:
        raise EvidenceError("laws of a schema on numbers cannot be written as a formula")
    index, offers = policy.index, planned.offers
    prior = np.exp(index.prior - index.prior.max())
    table = planned.at(planned.after(t), delays=True).table(offers, planned.together[0])
    interfaces = np.flatnonzero(prior > 0).tolist()
    if (offers.first[interfaces] < 0).any():
        raise EvidenceError("a model with utilities beside its decisions cannot be written out")
    n = len(offers.values(planned.together[0]))
    rows = []
    for interface in interfaces:
        _, *numbers = table[offers.first[interface]].tolist()
        parts = [numbers[k * n : (k + 1) * n] for k in range(4)]
        rows.append([index.network.roots[interface], float(prior[interface]), *parts])
    return Scores(
        planned.together[0],
        variables_of(policy),
        offers.values(planned.together[0]),
        [_plain(node) for node in index.network.nodes],
        rows,
        LEAST_KNOWN, TIE, 2 * planned.bound,
        policy.otherwise,  # type: ignore[arg-type]
        {absence: name for name, absence in schema.informative.items()},
    )  # fmt: skip


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
    raise EvidenceError(f"a node of kind {type(node).__name__} cannot be written out")


def _numbers(distribution: Distribution) -> list[Any]:
    """Return the name of a density's formula, and its numbers."""
    named = distribution.atoms()
    if named is not None:
        pairs = [[v, p] for v, p in named.items() if not isinstance(v, Mark)]
        return ["values", pairs, distribution.unlisted()]
    if distribution.family not in FORMULAS:
        raise EvidenceError(f"leaves of the family {distribution.family} cannot be written out")
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
