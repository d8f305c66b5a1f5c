"""Validity of networks (Defs. 2 to 5), soundness of templates (Defs. 7 and 8), fit to a schema.

Every check returns the violations that it found, each with node and path.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec

from rspmn.circuit.network import Network
from rspmn.circuit.node_arrays import NodeViews
from rspmn.circuit.nodes import FactoredLatents, Latent, Leaf, Max, Node, Product, Sum, Utility
from rspmn.circuit.scope import NEXT_STEPS, ArrayScopes, Scope, scopes, show_scope
from rspmn.circuit.traverse import fold_up, path_to
from rspmn.errors import CircuitError
from rspmn.schema import Schema

#: A node that breaks a definition, and how.
Finding = tuple[int, str]


@dataclass(frozen=True)
class Violation:
    """One place where a network breaks one definition.

    >>> print(Violation("max-unique (Def. 5)", 4, (9, 4), "'treat' is decided twice"))
    node 4 (path 9 → 4) is not max-unique (Def. 5): 'treat' is decided twice
    """

    definition: str
    node: int
    path: tuple[int, ...]  # from a root to the node, both included
    message: str

    def __str__(self) -> str:
        way = " → ".join(map(str, self.path))
        return f"node {self.node} (path {way}) is not {self.definition}: {self.message}"


P = ParamSpec("P")


def _once(
    check: Callable[Concatenate[Network, P], list[Violation]],
) -> Callable[Concatenate[Network, P], list[Violation]]:
    """Return a check that remembers what it found: networks never change."""

    @wraps(check)
    def found(network: Network, /, *args: P.args, **named: P.kwargs) -> list[Violation]:
        kept = network.checked.get(check.__name__)
        if kept is None or kept[0] != (args, named):
            kept = network.checked[check.__name__] = (args, named), check(network, *args, **named)
        return [*kept[1]]

    return found


@_once
def validity_violations(network: Network) -> list[Violation]:
    """Return everything that keeps a network from being a valid SPMN (Sec. 2).

    Valid means sum-complete, decomposable, max-complete and max-unique.
    """
    arrays = _array_scopes(network)
    if arrays is not None and arrays.is_valid:
        return []
    scope = scopes(network)
    return _with_paths(
        network,
        {
            "sum-complete (Def. 2)": sum_complete(network, scope),
            "decomposable (Def. 3)": decomposable(network, scope),
            "max-complete (Def. 4)": max_complete(network, scope),
            "max-unique (Def. 5)": max_unique(network),
        },
    )


@_once
def soundness_violations(template: Network) -> list[Violation]:
    """Return everything that keeps a template from being sound (Def. 8)."""
    arrays = _array_scopes(template)
    if arrays is not None and arrays.is_valid and arrays.is_sound(template.roots):
        return []
    return validity_violations(template) + _with_paths(
        template,
        {
            "of one scope with the other roots (Def. 8)": same_root_scopes(template),
            "mapped to a root (Defs. 6, 8)": latents_mapped(template, len(template.roots)),
        },
    )


@_once
def latent_violations(network: Network, interfaces: int) -> list[Violation]:
    """Return the latents of a network that are mapped to no root of a template."""
    arrays = _array_scopes(network)
    if arrays is not None and arrays.leads_to(interfaces):
        return []
    found = latents_mapped(network, interfaces)
    return _with_paths(network, {"mapped to a root (Defs. 6, 8)": found})


def top_violations(top: Network, interfaces: int) -> list[Violation]:
    """Return everything that keeps a top network over `interfaces` roots from being valid.

    Def. 7: one root, sums and products, and latent nodes for leaves.
    """
    return validity_violations(top) + _with_paths(
        top,
        {
            "part of a top network (Def. 7)": top_nodes(top),
            "mapped to a root (Defs. 6, 8)": latents_mapped(top, interfaces),
        },
    )


def order_violations(
    network: Network, known_before: Mapping[str, Collection[str]]
) -> list[Violation]:
    """Return every place where the order of variables differs from P≺.

    `known_before` names, for each decision, what is observed and decided before it.
    """
    return _with_paths(network, {"in the partial order (Sec. 2)": in_order(network, known_before)})


@_once
def schema_violations(
    network: Network, schema: Schema, recurrent: bool, given: Collection[str] = ()
) -> list[Violation]:
    """Return everything that keeps a network from describing one step of a schema.

    If it is recurrent, a template, the next steps are also in the scope of its roots. Variables
    that are `given` are not in it: the network describes the rest of the step.
    """
    expected: Scope = frozenset(schema.variables) - frozenset(given)
    if recurrent:
        expected |= {NEXT_STEPS}
    arrays = _array_scopes(network)
    if arrays is not None and arrays.is_valid and arrays.fits(schema, network.roots, expected):
        return []
    known_before = {name: schema.known_before(name) for name in schema.decisions}
    return order_violations(network, known_before) + _with_paths(
        network,
        {
            "over the schema's variables": same_variables(network, expected),
            "in its variable's role": in_role(network, schema),
        },
    )


# ---- the definitions -----------------------------------------------------------------


def sum_complete(network: Network, scope: list[Scope]) -> Iterator[Finding]:
    """Def. 2: all children of the same sum node have the same scope."""
    yield from _same_scope_below(network, scope, Sum)


def decomposable(network: Network, scope: list[Scope]) -> Iterator[Finding]:
    """Def. 3: no variable appears in more than one child of a product node."""
    for index, node in enumerate(network.nodes):
        if isinstance(node, Product):
            if sum([len(scope[child]) for child in node.children]) == len(scope[index]):
                continue  # nothing is counted twice
            seen: dict[object, int] = {}
            for child in node.children:
                shared = sorted((v for v in scope[child] if v in seen), key=str)
                if shared:
                    yield (
                        index,
                        f"{show_scope(frozenset(shared))} appears in children "
                        f"{seen[shared[0]]} and {child}",
                    )
                seen.update(dict.fromkeys(scope[child], child))


def max_complete(network: Network, scope: list[Scope]) -> Iterator[Finding]:
    """Def. 4: all children of the same max node have the same scope."""
    yield from _same_scope_below(network, scope, Max)


def max_unique(network: Network) -> Iterator[Finding]:
    """Def. 5: a decision's max node appears at most once in every path from root to leaves."""
    scope, below = scopes(network), None
    for index, node in enumerate(network.nodes):
        if isinstance(node, Max):
            for child in node.children:
                if node.decision not in scope[child]:
                    continue
                below = below or _decided_below(network)
                if node.decision in below[child]:
                    yield index, f"{node.decision!r} is decided again below child {child}"
                    break


def same_root_scopes(template: Network) -> Iterator[Finding]:
    """Def. 8: the scope of all the root interface nodes is the same."""
    scope = scopes(template)
    first = template.roots[0]
    for root in template.roots[1:]:
        if scope[root] != scope[first]:
            yield root, f"{_difference(scope, first, root)}"


def latents_mapped(network: Network, interfaces: int) -> Iterator[Finding]:
    """Defs. 6 and 8: each latent node is related to a root interface node, and so is its scope."""
    for index, node in enumerate(network.nodes):
        if isinstance(node, FactoredLatents) and node.factors.interfaces != interfaces:
            yield (
                index,
                f"FactoredLatents of {node.factors.interfaces} interface nodes, but the template "
                f"has {interfaces} root interface nodes",
            )
        if isinstance(node, Latent) and node.interface >= interfaces:
            yield (
                index,
                f"Latent({node.interface}), but the template's {interfaces} root interface "
                f"nodes are 0 to {interfaces - 1}",
            )


def top_nodes(top: Network) -> Iterator[Finding]:
    """Def. 7: a top network consists of sums and products, and its leaves are latent nodes."""
    if len(top.roots) != 1:
        yield top.roots[1], f"a top network has one root, this one has {len(top.roots)}"
    for index, node in enumerate(top.nodes):
        if not isinstance(node, Sum | Product | Latent):
            yield index, f"a top network has no {type(node).__name__} node"
        elif isinstance(node, Product) and not node.children:
            yield index, "its leaves are latents, but this product has no children"


def in_order(network: Network, known_before: Mapping[str, Collection[str]]) -> Iterator[Finding]:
    """Sec. 2, I0 ≺ D1 ≺ I1 ≺ …: a max node is below what is known before it, above the rest.

    A decision could not depend on a variable of I0 below its max node. With a variable of I1 beside
    the max node, a sum above both could let the decision depend on what is known later.
    """
    scope = scopes(network)
    utilities = {node.variable for node in network.nodes if isinstance(node, Utility)}
    before = {decision: frozenset(names) for decision, names in known_before.items()}
    found: dict[tuple[Scope, ...], list[str]] = {}  # by the scopes of a product's children
    for index, node in enumerate(network.nodes):
        if isinstance(node, Max):
            for child in node.children:
                early = scope[child] & before.get(node.decision, frozenset())
                if early:
                    yield index, f"{show_scope(early)} is known before {node.decision!r}, not after"
                    break
        elif isinstance(node, Product):
            children = tuple([scope[child] for child in node.children])
            if children not in found:
                found[children] = list(_too_late(children, before, utilities))
            for message in found[children]:
                yield index, message


def _too_late(
    children: Sequence[Scope], before: Mapping[str, Collection[str]], utilities: Collection[str]
) -> Iterator[str]:
    """Say what is beside a decision in a product, although it is known only after it."""
    for k, child in enumerate(children):
        for decision in before:
            if decision in child:
                beside = frozenset[str]().union(*children[:k], *children[k + 1 :])
                late = beside.difference(before[decision], utilities, [NEXT_STEPS])
                if late:
                    yield f"{show_scope(late)} is known after {decision!r}, not before"


def same_variables(network: Network, expected: Scope) -> Iterator[Finding]:
    """Yield roots whose variables differ from those expected."""
    scope = scopes(network)
    for root in network.roots:
        if scope[root] != expected:
            yield root, f"expected {show_scope(expected)}, found {show_scope(scope[root])}"


def in_role(network: Network, schema: Schema) -> Iterator[Finding]:
    """Yield leaves, max nodes and utilities whose variable has another role or kind."""
    for index, node in enumerate(network.nodes):
        match node:
            case Leaf(variable=name):
                kind = schema.kinds.get(name)
                fits = name in schema.state_variables
                fits = fits and (kind is None or kind in node.distribution.kinds)
            case Max(decision=name):
                fits = name in schema.decisions
            case Utility(variable=name):
                fits = name == schema.utility
            case _:
                continue
        if not fits:
            what = type(node.distribution if isinstance(node, Leaf) else node).__name__
            yield index, f"a {what} node, but {name!r} is {_role(schema, name)}"


# ---- shared by the definitions -------------------------------------------------------


def _array_scopes(network: Network) -> ArrayScopes | None:
    """Return the scopes of a network that is arrays, which may show at once that all is well."""
    if not isinstance(network.nodes, NodeViews):
        return None
    if "array scopes" not in network.checked:
        network.checked["array scopes"] = ArrayScopes(network.nodes.arrays)
    found = network.checked["array scopes"]
    assert isinstance(found, ArrayScopes)
    return found


def refuse(owner: str, violations: list[Violation]) -> None:
    """Raise an error about the first of some violations, if there are any."""
    if violations:
        more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
        raise CircuitError(f"{owner}: {violations[0]}{more}")


def _same_scope_below(
    network: Network, scope: list[Scope], kind: type[Sum] | type[Max]
) -> Iterator[Finding]:
    for index, node in enumerate(network.nodes):
        if isinstance(node, kind):
            first = node.children[0]
            for child in node.children[1:]:
                if scope[child] is not scope[first] and scope[child] != scope[first]:
                    yield index, _difference(scope, first, child)
                    break


def _difference(scope: list[Scope], one: int, other: int) -> str:
    return (
        f"node {one} has scope {show_scope(scope[one])}, "
        f"but node {other} has {show_scope(scope[other])}"
    )


def _decided_below(network: Network) -> list[frozenset[str]]:
    """Return the decisions made at or below each node."""

    def decided(node: Node, below: list[frozenset[str]]) -> frozenset[str]:
        here = [node.decision] if isinstance(node, Max) else []
        return frozenset(here).union(*below)

    return fold_up(network, decided)


def _with_paths(network: Network, findings: Mapping[str, Iterator[Finding]]) -> list[Violation]:
    """Return findings, by the definition that they break, as violations."""
    return [
        Violation(name, node, path_to(network, node), message)
        for name, several in findings.items()
        for node, message in several
    ]


def _role(schema: Schema, name: str) -> str:
    if name == schema.utility:
        return "the utility"
    if name in schema.decisions:
        return "a decision"
    return f"a state variable ({schema.kinds.get(name, 'of unknown kind')})"
