"""Interface nodes that no decision tells apart are merged: approximate bisimulation by value.

Two interface nodes are alike if they offer the same decisions, and each is worth the same in both,
up to a tolerance, with 1, 2, … steps to go. Nodes that are alike become one. It has the states of
all of them; what a decision earns there, and where it leads, is the mean over them, weighed by
visits. The class of a node is the same whatever the order of the nodes.

What this costs is not estimated but computed: the plan of the smaller model is followed in the
larger one, each node deciding as its class does, and its values are subtracted from the best.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rspmn.circuit import Leaf, Max, Network, NetworkBuilder, Product, Sum, Utility
from rspmn.circuit.rewrite import graft
from rspmn.data.keys import group_weights
from rspmn.end_nodes import visits_of_states, weighted_top
from rspmn.errors import CircuitError, EvidenceError
from rspmn.infer.bellman import check_discount, check_steps
from rspmn.infer.branches import Branches
from rspmn.infer.compiled.finite_horizon import values_over
from rspmn.infer.compiled.planned import Plan
from rspmn.infer.criterion import MEU
from rspmn.model import RSPMN
from rspmn.types import Array, Bools, Ints

#: A node that was never visited counts as this many visits in the mean over its class.
LEAST_VISITS = 1.0


@dataclass(frozen=True, eq=False)
class MergeInfo:
    """What was merged, and what that costs."""

    classes: Ints  # [interfaces of the model], the interface node of the merged model
    #: What is lost from the start, if the merged model's policy is followed in the model.
    loss: float
    #: The most that is lost in any interface node, with any number of steps to go.
    worst: float


def merged(
    model: RSPMN, tolerance: float, horizon: int, discount: float = 1.0
) -> tuple[RSPMN, MergeInfo]:
    """Return a model with fewer interface nodes, and what it costs; see `RSPMN.merged`."""
    check_steps(horizon, least=1)
    check_discount(discount)
    if isinstance(tolerance, bool) or not 0 <= tolerance < np.inf:
        raise EvidenceError(f"tolerance: expected a number of 0 or more, found {tolerance!r}")
    trees = [_Tree.of(model.template, k) for k in range(model.num_interfaces)]
    classes = _classes(model, trees, float(tolerance), horizon, discount)
    small = _smaller(model, trees, classes)
    lost = _losses(model, small, trees, classes, horizon, discount)
    at_start = float(np.array(model.starts) @ lost[-1])
    return small, MergeInfo(classes, at_start, float(lost.max()))


@dataclass(frozen=True)
class _Tree:
    """The decisions of an interface node: what is decided, and the nodes of the template."""

    state: tuple[int, ...]  # the nodes that describe its states
    shape: tuple[tuple[str, tuple[Any, ...]], ...]  # decision and values of each max node
    maxes: tuple[int, ...]  # the max nodes, those above first

    @classmethod
    def of(cls, template: Network, interface: int) -> "_Tree":
        """Read it from the template."""
        root = template.nodes[template.roots[interface]]
        children = root.children if isinstance(root, Product) else ()
        first = [c for c in children if isinstance(template.nodes[c], Max)]
        if len(first) != 1:
            raise _not_plain(interface, "a product of a state and one decision")
        maxes = tuple(_maxes(template, first[0], interface))
        nodes = [template.nodes[at] for at in maxes]
        shape = tuple((n.decision, n.values) for n in nodes if isinstance(n, Max))
        return cls(tuple(c for c in children if c != first[0]), shape, maxes)


def _maxes(template: Network, at: int, interface: int) -> Iterator[int]:
    """Yield a max node and those below it; refuse what is observed between decisions."""
    yield at
    for child in template.nodes[at].children:
        child = _alone(template, child)
        below = template.nodes[child]
        if isinstance(below, Max):
            yield from _maxes(template, child, interface)
        elif any(isinstance(template.nodes[c], Leaf | Max) for c in below.children):
            raise _not_plain(interface, "nothing that is observed after a decision")


def _alone(template: Network, index: int) -> int:
    """Return a node or, of a product of one, its child."""
    while isinstance(node := template.nodes[index], Product) and len(node.children) == 1:
        index = node.children[0]
    return index


def _not_plain(interface: int, expected: str) -> CircuitError:
    return CircuitError(f"merged: interface node {interface}: expected {expected}")


# ---- which nodes are alike -------------------------------------------------------------


def _classes(
    model: RSPMN, trees: list[_Tree], tolerance: float, horizon: int, discount: float
) -> Ints:  # [interfaces]
    """Return the class of each interface node; classes are numbered by their first nodes."""
    if model.bellman.factored:
        raise CircuitError(
            "merged: successors are products of factors that are not multiplied out, so there are "
            "no branches to merge: learn with LearnConfig(successors='counts')"
        )
    values = values_over(model.bellman, horizon - 1, discount)
    groups: dict[Any, list[int]] = {}
    for node, tree in enumerate(trees):
        own = node if node in (model.end, model.unknown) else None
        groups.setdefault((tree.shape, own), []).append(node)
    several = [np.array(nodes) for nodes in groups.values() if len(nodes) > 1]
    branches = [_branches(model, [trees[k] for k in nodes.tolist()]) for nodes in several]
    labels = [np.zeros(len(nodes), dtype=np.int64) for nodes in several]
    for after in range(horizon):
        found = model.bellman.choose(values[after], None, discount, after == 0, MEU)
        for k, numbers in enumerate(branches):
            for column in found.worth[0][numbers].T:
                labels[k] = _divided(labels[k], column, tolerance)
    first = np.arange(len(trees))
    for nodes, label in zip(several, labels, strict=True):
        _, leading, of_label = np.unique(label, return_index=True, return_inverse=True)
        first[nodes] = nodes[leading][of_label]
    return np.unique(first, return_inverse=True)[1]


def _branches(model: RSPMN, trees: list[_Tree]) -> Ints:  # [nodes, branches]
    """Return the branches of the innermost decisions of interface nodes of one shape."""
    level = model.bellman.levels[0]
    place = {node: k for k, node in enumerate(level.nodes.tolist())}
    ends = np.append(level.starts, len(level.untried))
    found = []
    for tree in trees:
        inner = [place[at] for at in tree.maxes if at in place]
        found.append(np.concatenate([np.arange(ends[k], ends[k + 1]) for k in inner]))
    return np.array(found)


def _divided(label: Ints, numbers: Array, tolerance: float) -> Ints:  # [n]
    """Divide classes so that no numbers of one are further apart than the tolerance.

    >>> _divided(np.array([0, 0, 0, 1]), np.array([1.0, 1.5, 3.0, 1.0]), 1.0)
    array([0, 0, 1, 2])
    """
    known = np.isfinite(numbers)
    numbers = np.where(known, numbers, 0.0)
    order = np.lexsort((numbers, known, label))
    label, known, numbers = label[order], known[order], numbers[order]
    new = (np.diff(label, prepend=-1) > 0) | (np.diff(known, prepend=known[0]) != 0)
    above = numbers - numbers[new][np.cumsum(new) - 1]  # of the least of its class
    part = np.floor(above / tolerance) if tolerance > 0 else above
    new[1:] |= part[1:] != part[:-1]
    found = np.empty_like(label)
    found[order] = np.cumsum(new) - 1
    return found


# ---- the smaller model -----------------------------------------------------------------


def _smaller(model: RSPMN, trees: list[_Tree], classes: Ints) -> RSPMN:
    """Return the model of classes."""
    count, visits = int(classes.max()) + 1, visits_of_states(model)
    weights = np.maximum(visits, LEAST_VISITS)
    weights /= group_weights(classes, weights)[classes]
    members = np.split(np.argsort(classes, kind="stable"), np.cumsum(np.bincount(classes))[:-1])
    copied, builder = _Copied(model, classes), NetworkBuilder()
    placed = graft(builder, model.template, rename=None)
    roots = []
    for nodes in members:
        states = [[placed[c] for c in trees[k].state] for k in nodes.tolist()]
        parts = [builder.product([c for c in state if c is not None]) for state in states]
        state = parts[0] if len(parts) == 1 else builder.sum(parts, weights[nodes].tolist())
        alike = [trees[k].maxes for k in nodes.tolist()]
        roots.append(builder.product([state, copied.max_node(builder, alike, weights[nodes])]))
    beyond = np.setdiff1d(np.arange(count), classes[np.setdiff1d(np.arange(len(trees)),
                                                                 model.beyond)])  # fmt: skip
    return replace(
        model,
        top=weighted_top(group_weights(classes, np.array(model.starts), count).tolist()),
        template=builder.build(*roots),
        visits=tuple(group_weights(classes, np.array(model.visits), count)) if model.visits else (),
        untried=None, avoided=None, counts=None, soft_counts=None,
        beyond=tuple(beyond.tolist()),
    )  # fmt: skip


class _Copied:
    """Copies decisions, averaged over the interface nodes of a class."""

    def __init__(self, model: RSPMN, classes: Ints) -> None:
        from scipy.sparse import csr_array

        self.template, self.level = model.template, model.bellman.levels[0]
        self.utility = model.schema.utility
        self.place = {node: k for k, node in enumerate(self.level.nodes.tolist())}
        count, interfaces = int(classes.max()) + 1, model.num_interfaces
        ones = np.ones(interfaces), (np.arange(interfaces), classes)
        leads = csr_array(self.level.forms.matrix)[:, :interfaces]
        of_classes = (leads @ csr_array(ones, shape=(interfaces, count))).tocsr()
        #: Where branches of innermost decisions lead: classes and weights, from bound to bound.
        self.bounds = of_classes.indptr.tolist()
        self.leads = list(zip(of_classes.indices.tolist(), of_classes.data.tolist(), strict=True))

    def max_node(
        self, builder: NetworkBuilder, maxes: list[tuple[int, ...]], weights: Array
    ) -> int:
        """Add the decisions of interface nodes of one shape; return the first."""
        places = iter(range(len(maxes[0])))

        def grown() -> int:  # in the order of `_maxes`
            place = next(places)
            at = [tree[place] for tree in maxes]
            node = self.template.nodes[at[0]]
            assert isinstance(node, Max)
            below = [
                grown() if isinstance(self.template.nodes[_alone(self.template, child)], Max)
                else self._outcome(builder, at, branch, weights)
                for branch, child in enumerate(node.children)
            ]  # fmt: skip
            return builder.max(node.decision, dict(zip(node.values, below, strict=True)))

        return grown()

    def _outcome(self, builder: NetworkBuilder, at: list[int], branch: int, weights: Array) -> int:
        """Add what a branch of max nodes earns, and where it leads."""
        leads: dict[int, float] = {}
        for node, share in zip(at, weights.tolist(), strict=True):
            number = int(self.level.starts[self.place[node]]) + branch
            for to, weight in self.leads[self.bounds[number] : self.bounds[number + 1]]:
                leads[to] = leads.get(to, 0.0) + share * weight
        after = builder.sum([builder.latent(to) for to in leads], list(leads.values()))
        logged = [_earned(self.template, self.template.nodes[n].children[branch]) for n in at]
        means, variances, counts = np.array(logged).T
        mean, variance = _mixed(weights, means, variances)
        earned = builder.utility(self.utility, mean, float(counts.sum()), variance)
        return builder.product([earned, after])


def _earned(template: Network, index: int) -> tuple[float, float, float]:
    """Return mean, variance and count of what a branch earns, whatever it leads to."""
    node = template.nodes[index]
    if isinstance(node, Utility):
        return node.mean, node.variance, node.count
    if not isinstance(node, Sum | Product):
        return 0.0, 0.0, 0.0
    means, variances, counts = np.array([_earned(template, c) for c in node.children]).T
    if isinstance(node, Sum):
        return *_mixed(np.array(node.weights), means, variances), float(counts.sum())
    return float(means.sum()), float(variances.sum()), float(counts.sum())


def _mixed(weights: Array, means: Array, variances: Array) -> tuple[float, float]:
    """Return mean and variance of a mixture."""
    mean = float(weights @ means)
    return mean, float(weights @ (variances + (means - mean) ** 2))


# ---- what it costs ---------------------------------------------------------------------


def _losses(
    model: RSPMN, small: RSPMN, trees: list[_Tree], classes: Ints, horizon: int, discount: float
) -> Array:  # [horizon, interfaces]
    """Return what each interface node loses by the smaller model's plan, with 1, 2, … steps."""
    bellman, plan = model.bellman, Plan(small, horizon, discount, MEU)
    best, values = values_over(bellman, horizon, discount), np.zeros(model.num_interfaces)
    same = [_Tree.of(small.template, k).maxes for k in range(small.num_interfaces)]
    pairs = {at: same[classes[node]][k]
             for node, tree in enumerate(trees) for k, at in enumerate(tree.maxes)}  # fmt: skip
    there = np.concatenate([level.nodes for level in small.bellman.levels]).tolist()
    place = {node: k for k, node in enumerate(there)}
    numbers = [
        np.array([place[pairs[n]] for n in level.nodes.tolist()]) for level in bellman.levels
    ]
    starts = np.concatenate([level.starts for level in small.bellman.levels])
    found = np.zeros((horizon, model.num_interfaces))
    for after in range(horizon):
        branch = np.concatenate(plan.at(after).choices.chosen) - starts
        prescribed = []
        for level, number in zip(bellman.levels, numbers, strict=True):
            taken = np.zeros(len(level.untried), dtype=bool)
            taken[level.starts + branch[number]] = True
            prescribed.append((level.branches, taken))
        values = bellman.update(values, discount, after == 0, _Prescribed(prescribed))
        known = np.isfinite(best[after + 1])
        found[after][known] = best[after + 1][known] - values[known]
    return found


class _Prescribed:
    """The criterion that allows one branch of each max node."""

    def __init__(self, taken: list[tuple[Branches, Bools]]) -> None:
        self.taken = taken  # of each level

    def scores(self, worth: Array, branches: Branches) -> Array:  # [branches]
        """Return 0 for what is taken, NaN for all else."""
        taken = next(taken for known, taken in self.taken if known is branches)
        return np.where(taken, np.where(np.isfinite(worth), 0.0, worth), np.nan)
