"""Scope (Def. 1), in terms of which validity is defined: of nodes, and of arrays of nodes."""

from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from functools import cached_property
from typing import Final, Literal

import numpy as np

from rspmn.circuit.network import Network
from rspmn.circuit.node_arrays import KINDS, NodeArrays
from rspmn.circuit.nodes import FactoredLatents, Latent, Leaf, Max, Node, Product, Sum, Utility
from rspmn.circuit.traverse import fold_up
from rspmn.schema import Schema
from rspmn.types import Ints


class NextSteps(Enum):
    """The type of `NEXT_STEPS`."""

    NEXT_STEPS = "the next steps"

    def __repr__(self) -> str:
        return "NEXT_STEPS"


#: The scope of every latent node: all variables of all later steps. In a sound template all root
#: interface nodes have the same scope (Def. 8), so all latents have, too (Sec. 3.2), and one symbol
#: represents it before unfolding.
NEXT_STEPS: Final = NextSteps.NEXT_STEPS

Scope = frozenset[str | Literal[NextSteps.NEXT_STEPS]]
NOTHING: Scope = frozenset()


def scopes(network: Network) -> list[Scope]:
    """Return the scope of every node: the union of its children's; of a leaf, its variable.

    The decision of a max node is in its scope. Def. 1 leaves it out, but Algorithm 3 looks for
    decisions in scopes, and without it two factors of a product could make the same decision
    differently. Scopes are computed once for each network.
    """
    return network.scopes


def compute_scopes(network: Network) -> list[Scope]:
    """Compute the scope of every node; equal scopes are the same object."""
    return fold_up(network, _Scopes())


class _Scopes:
    """The scope of a node, given those of its children; it makes each scope once."""

    def __init__(self) -> None:
        self._made: dict[Scope, Scope] = {}
        self._single: dict[object, Scope] = {}  # by variable
        self._unions: dict[frozenset[int], Scope] = {}  # by the ids of several scopes

    def __call__(self, node: Node, below: list[Scope]) -> Scope:
        match node:
            case Leaf() | Utility():
                return self._of(node.variable)
            case Latent() | FactoredLatents():
                return self._of(NEXT_STEPS)
            case Max():
                return self._union([self._of(node.decision), *below])
            case Sum() | Product():
                return self._union(below)

    def _of(self, variable: str | Literal[NextSteps.NEXT_STEPS]) -> Scope:
        if variable not in self._single:
            self._single[variable] = self._once(frozenset([variable]))
        return self._single[variable]

    def _union(self, scopes: list[Scope]) -> Scope:
        distinct = frozenset(map(id, scopes))
        if len(distinct) == 1:
            return scopes[0]
        if distinct not in self._unions:
            self._unions[distinct] = self._once(NOTHING.union(*scopes))
        return self._unions[distinct]

    def _once(self, scope: Scope) -> Scope:
        return self._made.setdefault(scope, scope)


def show_scope(scope: Scope) -> str:
    """Return a scope as text, in alphabetical order."""
    return "{" + ", ".join(sorted(str(getattr(v, "value", v)) for v in scope)) + "}"


#: The variables in a word: so few that words of disjoint scopes add up without overflow.
BITS = 32


class ArrayScopes:
    """The scope of every node as bits, one for each variable."""

    def __init__(self, arrays: NodeArrays) -> None:
        self.arrays = arrays
        leaves = [item.variable for item in arrays.objects if isinstance(item, Leaf)]
        names = dict.fromkeys([NEXT_STEPS, *arrays.decisions, *arrays.names, *leaves])
        self._place = {name: k for k, name in enumerate(names)}
        self._words = -(-len(names) // BITS)

    def of(self, variables: Iterable[object]) -> Ints:  # [words]
        """Return a scope as bits; variables that are nowhere in the network have none."""
        found = np.zeros(self._words, dtype=np.int64)
        for name in variables:
            if name in self._place:
                found[self._place[name] // BITS] |= 1 << self._place[name] % BITS
        return found

    def _each(self, names: Iterable[object]) -> Ints:  # [names, words]
        place = np.array([self._place[name] for name in names], dtype=np.int64)
        found = np.zeros((len(place), self._words), dtype=np.int64)
        found[np.arange(len(place)), place // BITS] = 1 << place % BITS
        return found

    @cached_property
    def bits(self) -> Ints:  # [nodes, words]
        """The scope of each node (Def. 1)."""
        arrays = self.arrays
        leaf = np.array([isinstance(item, Leaf) for item in arrays.objects], dtype=bool)
        of_objects = np.tile(self.of([NEXT_STEPS]), (len(leaf), 1))
        of_objects[leaf] = self._each(i.variable for i in arrays.objects if isinstance(i, Leaf))
        names = arrays.utilities[:, 0].astype(np.int64)
        of_items = {
            Leaf: of_objects,
            FactoredLatents: of_objects,
            Utility: self._each(arrays.names)[names],
            Max: self._each(arrays.decisions),
        }
        found = np.zeros((len(arrays), self._words), dtype=np.int64)
        found[arrays.of_kind(Latent)] = self.of([NEXT_STEPS])
        for kind, of_item in of_items.items():
            here = arrays.of_kind(kind)
            found[here] = of_item[arrays.item[here]]
        for level in arrays.levels:
            edges, first = arrays.edges_of(level)
            found[level] |= np.bitwise_or.reduceat(found[arrays.children[edges]], first, axis=0)
        return found

    @cached_property
    def is_valid(self) -> bool:
        """Whether Defs. 2 to 5 hold for certain."""
        arrays, bits = self.arrays, self.bits
        parent, child = arrays.parents, arrays.children
        within = bits[child]  # [edges, words]
        product = arrays.kind[parent] == KINDS[Product]
        # Defs. 2 and 4: what is below a sum or max node has the scope of its first child
        first = bits[child[arrays.starts[parent]]]
        if not ((within == first).all(axis=1) | product).all():
            return False
        # Def. 5: a decision is not made again below
        decides = arrays.kind[parent] == KINDS[Max]
        made = self._each(arrays.decisions)[arrays.item[parent[decides]]]
        if (within[decides] & made).any():
            return False
        # Def. 3: scopes are disjoint if they add up to their union
        products = np.flatnonzero((arrays.kind == KINDS[Product]) & (np.diff(arrays.starts) > 0))
        edges, starts = arrays.edges_of(products)
        if not len(products):
            return True
        return bool((np.add.reduceat(within[edges], starts, axis=0) == bits[products]).all())

    def is_sound(self, roots: Collection[int]) -> bool:
        """Whether all roots have one scope (Def. 8), and latents lead to them, for certain."""
        here = np.array(roots)
        return bool((self.bits[here] == self.bits[here[0]]).all()) and self.leads_to(len(roots))

    def leads_to(self, interfaces: int) -> bool:
        """Whether all latents lead to one of so many interface nodes."""
        arrays = self.arrays
        factored = [o.factors for o in arrays.objects if isinstance(o, FactoredLatents)]
        return bool((arrays.item[arrays.of_kind(Latent)] < interfaces).all()) and all(
            factors.interfaces == interfaces for factors in factored
        )

    def fits(self, schema: Schema, roots: Collection[int], expected: Collection[object]) -> bool:
        """Whether roots have the expected variables, in their roles and in order, for certain.

        The network must be valid.
        """
        arrays = self.arrays
        if any(name not in self._place for name in expected):
            return False
        if not (self.bits[np.array(roots)] == self.of(expected)).all():
            return False
        if not set(arrays.decisions) <= set(schema.decisions):
            return False
        if not set(arrays.names) <= {schema.utility}:
            return False
        leaves = [item for item in arrays.objects if isinstance(item, Leaf)]
        return all(_is_in_role(leaf, schema) for leaf in leaves) and self._in_order(
            {name: schema.known_before(name) for name in schema.decisions}
        )

    def _in_order(self, known_before: Mapping[str, Collection[str]]) -> bool:
        """Whether max nodes are below what is known before them, above the rest (Sec. 2)."""
        arrays, bits = self.arrays, self.bits
        parent, within = arrays.parents, bits[arrays.children]
        for number, name in enumerate(arrays.decisions):
            early = self.of(known_before[name])
            here = (arrays.kind == KINDS[Max]) & (arrays.item == number)
            if (within[here[parent]] & early).any():
                return False
            beside = self._beside(within, self.of([name]))
            allowed = early | self.of([*arrays.names, NEXT_STEPS])
            if (beside & ~allowed).any():
                return False
        return True

    def _beside(self, within: Ints, decision: Ints) -> Ints:  # [edges, words]
        """Return what is beside a decision in products, of each child that makes the decision."""
        arrays = self.arrays
        makes = np.asarray((within & decision).any(axis=1))
        here = np.flatnonzero(makes & (arrays.kind[arrays.parents] == KINDS[Product]))
        return np.asarray(self.bits[arrays.parents[here]] & ~within[here])


def _is_in_role(leaf: Leaf, schema: Schema) -> bool:
    kind = schema.kinds.get(leaf.variable)
    fits = kind is None or kind in leaf.distribution.kinds
    return fits and leaf.variable in schema.state_variables
