"""Network → network: copying with changes. All of it is one fold into a builder."""

from collections.abc import Callable
from dataclasses import replace

from rspmn.circuit.network import Network, NetworkBuilder
from rspmn.circuit.nodes import Latent, Leaf, Max, Node, Product, Sum, Utility
from rspmn.circuit.traverse import fold_up


def at_step(variable: str, step: int) -> str:
    """Name a variable of one step of an unfolded network.

    >>> at_step("x", 2)
    'x@2'
    """
    return f"{variable}@{step}"


def graft(
    builder: NetworkBuilder,
    network: Network,
    rename: Callable[[str], str] | None,
    latent: Callable[[int], int | None],
) -> list[int | None]:
    """Copy a network into a builder; return where each of its nodes came to stand.

    `rename` gives variables and decisions other names. `latent(i)` says which node of the builder
    takes the place of `Latent(i)`, or None to leave it out. A sum or product of which nothing is
    left is left out too (Sec. 3.2, on the bottom-most template); below a max node the constant 1
    takes its place, so that the decision stays.
    """

    def copy(node: Node, below: list[int | None]) -> int | None:
        match node:
            case Latent():
                return latent(node.interface)
            case Leaf() | Utility():
                return builder.add(_renamed(node, rename))
            case Max():
                children = [builder.product([]) if c is None else c for c in below]
                decision = node.decision if rename is None else rename(node.decision)
                return builder.max(decision, dict(zip(node.values, children, strict=True)))
            case Product():
                kept = [child for child in below if child is not None]
                return builder.product(kept) if kept or not node.children else None
            case Sum():
                left = [(c, w) for c, w in zip(below, node.weights, strict=True) if c is not None]
                return _sum(builder, left, whole=len(left) == len(below))

    return fold_up(network, copy)


def _renamed(node: Leaf | Utility, rename: Callable[[str], str] | None) -> Leaf | Utility:
    return node if rename is None else replace(node, variable=rename(node.variable))


def _sum(builder: NetworkBuilder, left: list[tuple[int, float]], whole: bool) -> int | None:
    """Add the sum of the children that are left, their weights scaled to 1 again."""
    total = 1.0 if whole else sum(weight for _, weight in left)
    if not total > 0:
        return None
    return builder.sum([child for child, _ in left], [weight / total for _, weight in left])


def with_branches(builder: NetworkBuilder, index: int, extra: int) -> int:
    """Add the branches of one node's decisions that another lacks, where there is a place.

    Where a sum stands between two decisions, for what is seen there, there is none: what the other
    has below it is left out.
    """
    here, other = builder[index], builder[extra]
    if isinstance(here, Max) and isinstance(other, Max):
        branches = dict(zip(here.values, here.children, strict=True))
        for value, child in zip(other.values, other.children, strict=True):
            known = branches.get(value)
            branches[value] = child if known is None else _below(builder, known, child)
        return builder.max(here.decision, branches)
    if isinstance(here, Product):
        below, over = _deciding(builder, index), _deciding(builder, extra)
        if below is not None and over is not None:
            found = with_branches(builder, below, over)
            return builder.product([found if c == below else c for c in here.children])
    return index


def _below(builder: NetworkBuilder, index: int, extra: int) -> int:
    """Go on below a decision if nothing was seen after it: it may have been something else."""
    if any(isinstance(builder[child], Leaf) for child in builder[index].children):
        return index
    return with_branches(builder, index, extra)


def _deciding(builder: NetworkBuilder, index: int) -> int | None:
    """Return the node itself, or the factor of a product, that holds a max node at its top."""
    node = builder[index]
    if isinstance(node, Max):
        return index
    if not isinstance(node, Product):
        return None
    holds = (c for c in node.children if _deciding(builder, c) is not None)
    return next(holds, None)
