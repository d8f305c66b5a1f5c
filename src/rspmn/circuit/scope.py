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
    """Compute the scope of every node."""
    return fold_up(network, _scope)


def _scope(node: Node, below: list[Scope]) -> Scope:
    match node:
        case Leaf() | Utility():
            return frozenset([node.variable])
        case Latent() | FactoredLatents():
            return frozenset([NEXT_STEPS])
        case Max():
            return frozenset([node.decision]).union(*below)
        case Sum():
            return below[0] if all(scope == below[0] for scope in below) else NOTHING.union(*below)
        case Product():
            return NOTHING.union(*below)


def show_scope(scope: Scope) -> str:
    """Return a scope as text, in alphabetical order."""
    return "{" + ", ".join(sorted(str(getattr(v, "value", v)) for v in scope)) + "}"
