"""Interface nodes that are no logged states, and top networks over interface nodes.

Three kinds of roots close a template: END, where an episode is over; UNKNOWN, for successors that
were not logged; and frontier nodes, states in which no decision was logged. Their variables have
marks for values, so evidence finds them by the same rules as any other node.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from rspmn.circuit import Categorical, Leaf, Max, Network, NetworkBuilder, Product, Sum
from rspmn.schema import Schema
from rspmn.types import Array
from rspmn.values import END, UNKNOWN, Mark


def end_root(builder: NetworkBuilder, schema: Schema, index: int) -> int:
    """Add the END interface node as root `index`: absorbing, with utility 0 in every step.

    All its variables and decisions are END. So it has the scope that Def. 8 requires of every root:
    a step with any other value has likelihood 0 there, a step that is END has likelihood 1.
    """
    return _all_marked_root(builder, schema, END, index)


def unknown_root(builder: NetworkBuilder, schema: Schema, index: int) -> int:
    """Add the interface node of successors that were not logged, as root `index`.

    All its variables and decisions are UNKNOWN. No decision can be UNKNOWN, so its value is -∞
    before the last step: a branch that leads there counts only in the last step of a horizon.
    """
    return _all_marked_root(builder, schema, UNKNOWN, index)


def _all_marked_root(builder: NetworkBuilder, schema: Schema, mark: Mark, index: int) -> int:
    state = [builder.leaf(n, Categorical.certain(mark)) for n in schema.information_sets[0]]
    return marked_root(builder, schema, state, mark, index)


def marked_root(
    builder: NetworkBuilder, schema: Schema, state: Sequence[int], mark: Mark, index: int
) -> int:
    """Add an interface node for a state whose decisions, and all after them, have a mark.

    `builder`, `schema`: the template under construction, and its variables. `state`: nodes that
    describe the variables known before the first decision. `mark`: END or UNKNOWN. `index`: the
    interface node that follows, with utility 0.
    """
    below = [builder.utility(schema.utility, 0.0), builder.latent(index)]
    for place in range(len(schema.decisions), 0, -1):
        group = schema.information_sets[place]
        over = [builder.leaf(name, Categorical.certain(mark)) for name in group]
        below = [builder.product([*over, *below])]
        below = [builder.max(schema.decisions[place - 1], {mark: below[0]})]
    return builder.product([*state, *below])


class Template(Protocol):
    """What steps are assigned in: a model, or the initial template of one."""

    @property
    def schema(self) -> Schema: ...  # noqa: D102
    @property
    def template(self) -> Network: ...  # noqa: D102
    @property
    def visits(self) -> Sequence[float]: ...  # noqa: D102
    @property
    def end(self) -> int | None: ...  # noqa: D102
    @property
    def unknown(self) -> int | None: ...  # noqa: D102


def visits_of_states(template: Template) -> Array:  # [interfaces]
    """Return the visits of each interface node: 1 if unknown, 0 for END and UNKNOWN."""
    visits = np.array(template.visits or (1.0,) * len(template.template.roots))
    for marked in (template.end, template.unknown):
        if marked is not None:
            visits[marked] = 0.0
    return visits


def marked_interface(template: Network, mark: Mark) -> int | None:
    """Return the interface node in which all variables have one mark, None if there is none."""
    arrays, certain = template.arrays, Categorical.certain(mark)
    codes = [k for k, value in enumerate(arrays.values) if value is mark]
    marked = np.ones(len(arrays), dtype=bool)  # [nodes]
    leaves = arrays.of_kind(Leaf)
    of_objects = [isinstance(o, Leaf) and o.distribution == certain for o in arrays.objects]
    marked[leaves] = np.array(of_objects, dtype=bool)[arrays.item[leaves]]
    decided = np.isin(arrays.choice, codes) | (arrays.choice < 0)  # [edges]
    arrays.fold_up(marked, dict.fromkeys((Sum, Product, Max), np.logical_and), decided)
    found = np.flatnonzero(marked[list(template.roots)])
    return int(found[0]) if len(found) else None


def uniform_top(interfaces: int) -> Network:
    """Return the top network of Sec. 4, Step 2: one sum over all interface nodes, equal weights."""
    return weighted_top([1 / interfaces] * interfaces)


def weighted_top(weights: Sequence[float]) -> Network:
    """Return a top network that starts in interface node i with probability weights[i].

    >>> weighted_top([0.25, 0.0, 0.75])
    Network(3 nodes, 2 edges, roots (2,))
    """
    builder = NetworkBuilder()
    chosen = [(i, weight) for i, weight in enumerate(weights) if weight != 0]
    latents = [builder.latent(i) for i, _ in chosen]
    return builder.build(builder.sum(latents, [weight for _, weight in chosen]))
