"""Step 3: the initial template (Alg. 4), an S_L over all interface nodes beside every utility."""

from collections.abc import Callable, Sequence

from rspmn.circuit import Network, NetworkBuilder
from rspmn.circuit.rewrite import graft
from rspmn.learn.one_step import Interface


def initial_template(
    one_step: Network, interfaces: Sequence[Interface], further: int = 0
) -> Network:
    """Return the template with all weights alike.

    `further` counts interface nodes that S_L can lead to but that are not in the one-step
    network, such as END. The template is for study: the final one is made without it.
    """
    builder = NetworkBuilder()
    count = len(interfaces) + further
    anywhere = builder.sum([builder.latent(i) for i in range(count)], [1 / count] * count)
    return builder.build(*place_roots(builder, one_step, interfaces, lambda _: anywhere))


def place_roots(
    builder: NetworkBuilder,
    one_step: Network,
    interfaces: Sequence[Interface],
    successor: Callable[[int], int],
) -> list[int]:
    """Add the root interface nodes to a builder; `successor(k)` takes the place of latent k."""
    placed = graft(builder, one_step, rename=None, latent=successor)
    roots = []
    for children in interfaces:
        kept = [place for child in children if (place := placed[child]) is not None]
        roots.append(kept[0] if len(kept) == 1 else builder.product(kept))
    return roots
