"""Networks of one step or of several, made of a top network and a template (Sec. 3.2)."""

from collections.abc import Sequence

from rspmn.circuit.network import Network, NetworkBuilder
from rspmn.circuit.nodes import Latent, Node, Sum
from rspmn.circuit.rewrite import at_step, graft
from rspmn.circuit.traverse import walk_down
from rspmn.errors import CircuitError


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
