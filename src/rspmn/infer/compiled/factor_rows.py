"""Which rows of which tables the factored latents of a network have."""

from typing import NamedTuple

import numpy as np

from rspmn.circuit import FactoredLatents, LatentFactors, Network
from rspmn.types import Ints


class FactorRows(NamedTuple):
    """Factored latents that share their factors."""

    factors: LatentFactors
    nodes: Ints  # [nodes], sorted
    rows: Ints  # [nodes, components]


def rows_by_factors(network: Network, nodes: Ints) -> list[FactorRows]:
    """Return some factored latents of a network, by their factors."""
    arrays = network.arrays
    groups: dict[LatentFactors, dict[int, tuple[int, ...]]] = {}
    for index in np.unique(nodes).tolist():
        node = arrays.objects[arrays.item[index]]
        assert isinstance(node, FactoredLatents)
        groups.setdefault(node.factors, {})[index] = node.rows
    return [
        FactorRows(factors, np.array(list(rows)), np.array(list(rows.values()), dtype=np.int64))
        for factors, rows in groups.items()
    ]
