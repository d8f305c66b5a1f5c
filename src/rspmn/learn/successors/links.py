"""The edges of many S_L at once: to interface nodes, or to products of factors."""

from dataclasses import dataclass

import numpy as np

from rspmn.circuit import FactoredLatents, Latent, LatentFactors
from rspmn.circuit.blocks import BlockBuilder
from rspmn.circuit.node_arrays import KINDS
from rspmn.types import Array, Bools, Ints


@dataclass(frozen=True, eq=False)
class Links:
    """Edges of S_L, sorted by S_L."""

    owner: Ints  # [links], the number of the S_L
    to: Ints  # [links], the interface node; -1 - k is product k
    weight: Array  # [links], of any scale

    def __len__(self) -> int:
        return len(self.owner)

    @classmethod
    def joined(cls, *parts: "Links") -> "Links":
        """Return the links of several lists, one after the other at each S_L."""
        owner = np.concatenate([part.owner for part in parts])
        order = np.argsort(owner, kind="stable")
        to = np.concatenate([part.to for part in parts])
        weight = np.concatenate([part.weight for part in parts])
        return cls(owner[order], to[order], weight[order])

    def where(self, chosen: Bools) -> "Links":
        """Return some of the links."""
        return Links(self.owner[chosen], self.to[chosen], self.weight[chosen])

    def shares(self) -> Array:  # [links]
        """Return the weights, so that they sum to 1 for each S_L."""
        return np.asarray(self.weight / np.bincount(self.owner, self.weight)[self.owner])

    def add_latents(
        self, builder: BlockBuilder, factors: LatentFactors | None, rows: Ints | None
    ) -> Ints:  # [links]
        """Add what the links lead to; product k has the rows `rows[k]` of the factors' tables."""
        kind, item = np.full(len(self), KINDS[Latent]), self.to.copy()
        products = np.flatnonzero(self.to < 0)
        if len(products):
            assert factors is not None, "products have factors"
            assert rows is not None, "and rows of their tables"
            used, which = np.unique(-1 - self.to[products], return_inverse=True)
            nodes = [FactoredLatents(factors, tuple(row)) for row in rows[used].tolist()]
            kind[products] = KINDS[FactoredLatents]
            item[products] = builder.object_items(nodes)[which]
        return builder.add(kind, item, np.zeros_like(item))
