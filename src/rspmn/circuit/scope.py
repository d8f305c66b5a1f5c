"""Scope (Def. 1), in terms of which validity is defined."""

from enum import Enum
from typing import Final, Literal

from rspmn.circuit.network import Network
from rspmn.circuit.nodes import FactoredLatents, Latent, Leaf, Max, Node, Product, Sum, Utility
from rspmn.circuit.traverse import fold_up


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
