"""Network → network: copies with changes, as a fold into a builder; a template unfolded."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from rspmn.circuit.network import Network, NetworkBuilder, with_children
from rspmn.circuit.nodes import FactoredLatents, Latent, Leaf, Max, Node, Product, Sum, Utility
from rspmn.circuit.traverse import fold_up, walk_down
from rspmn.errors import CircuitError


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
    latent: Callable[[int], int | None] | None = None,
) -> list[int | None]:
    """Copy a network into a builder; return the index of each node there, None if it is left out.

    Parameters
    ----------
    builder, network
        Where to copy to, and what.
    rename
        Returns the new names of variables and decisions.
    latent
        `latent(i)` returns the node of the builder that replaces `Latent(i)`, or None to leave it
        out. Factored latents are multiplied out for it. A sum or product without any children left
        is left out too (Sec. 3.2, on the bottom-most template). Below a max node the constant 1
        replaces it, so that the decision is kept. Without `latent`, latents stay what they are.
    """
    unchanged = rename is None and latent is None

    def copy(node: Node, below: list[int | None]) -> int | None:
        if unchanged:  # so that nothing is left out
            return builder.add(with_children(node, tuple(below)))  # type: ignore[arg-type]
        match node:
            case Latent() | FactoredLatents():
                return builder.add(node) if latent is None else _linked(builder, node, latent)
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


def _linked(
    builder: NetworkBuilder, node: Latent | FactoredLatents, latent: Callable[[int], int | None]
) -> int | None:
    """Put what `latent` returns in the place of latents; factored ones are multiplied out."""
    if isinstance(node, Latent):
        return latent(node.interface)
    placed = list(map(latent, range(node.factors.interfaces)))
    if all(place is None for place in placed):
        return None
    pairs = [(p, w) for p, w in zip(placed, node.latent_weights(), strict=True) if w > 0]
    left = [(place, weight) for place, weight in pairs if place is not None]
    return _sum(builder, left, whole=len(left) == len(pairs))


def _renamed(node: Leaf | Utility, rename: Callable[[str], str] | None) -> Leaf | Utility:
    return node if rename is None else replace(node, variable=rename(node.variable))


def _sum(builder: NetworkBuilder, left: list[tuple[int, float]], whole: bool) -> int | None:
    """Add the sum of the children that are left, their weights scaled to sum to 1."""
    total = 1.0 if whole else sum(weight for _, weight in left)
    if not total > 0:
        return None
    return builder.sum([child for child, _ in left], [weight / total for _, weight in left])


def unfold(top: Network, template: Network, steps: int) -> Network:
    """Return the explicit network over `steps` steps, variable x of step t named `x@t`.

    The template is repeated, root interface nodes of step t+1 replace the latents of step t, the
    latents of the last step are removed, and the top network is put above.
    """
    if steps < 1:
        raise CircuitError(f"unfold: expected at least 1 step, found {steps}")
    builder = NetworkBuilder()
    below: list[int | None] = [None] * len(template.roots)
    for step in range(steps - 1, -1, -1):
        placed = graft(
            builder,
            template,
            rename=lambda name, step=step: at_step(name, step),  # type: ignore[misc]
            latent=below.__getitem__,
        )
        below = [placed[root] for root in template.roots]
    placed = graft(builder, top, rename=None, latent=below.__getitem__)
    root = placed[top.root]
    if root is None:
        raise CircuitError("unfold: the template has no variables")
    return builder.build(root)


def last_step(template: Network) -> Network:
    """Return the template without latents, and without nodes over nothing but latents."""
    builder = NetworkBuilder()
    placed = graft(builder, template, rename=None, latent=lambda _: None)
    return builder.build(*_roots(template, placed))


def first_step(top: Network, template: Network) -> Network:
    """Return the top network above the template, the latents of which stay."""
    builder = NetworkBuilder()
    roots = _copied(builder, template)
    root = graft(builder, top, rename=None, latent=roots.__getitem__)[top.root]
    assert root is not None, "a grafted latent is never None here"
    return builder.build(root)


def any_step(template: Network, visits: Sequence[float]) -> Network:
    """Return a sum over the roots of a template, weighted by their visits."""
    builder, total = NetworkBuilder(), sum(visits)
    roots = _copied(builder, template)
    return builder.build(builder.sum(roots, [v / total for v in visits]))


def start_distribution(top: Network, interfaces: int) -> tuple[float, ...]:
    """Return the probability of each interface node by a top network."""
    found = [0.0] * interfaces

    def send(_: int, node: Node, arrived: list[float]) -> list[tuple[int, float]]:
        share = sum(arrived)
        if isinstance(node, Latent):
            found[node.interface] += share
        weights = node.weights if isinstance(node, Sum) else (1.0,) * len(node.children)
        return [(c, share * weight) for c, weight in zip(node.children, weights, strict=True)]

    walk_down(top, {top.root: 1.0}, send)
    return tuple(found)


def _copied(builder: NetworkBuilder, template: Network) -> list[int]:
    return _roots(template, graft(builder, template, rename=None))


def _roots(network: Network, placed: Sequence[int | None]) -> list[int]:
    # A root has the schema's variables, so it is never left out with the latents.
    return [place for root in network.roots if (place := placed[root]) is not None]
