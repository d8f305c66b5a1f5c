"""Scope (Def. 1), the ground on which validity stands."""

from enum import Enum
from typing import Final, Literal

from rspmn.circuit.network import Network
from rspmn.circuit.nodes import Latent, Leaf, Max, Node, Product, Sum, Utility
from rspmn.circuit.traverse import fold_up


class NextSteps(Enum):
    """The type of `NEXT_STEPS`."""

    NEXT_STEPS = "the next steps"

    def __repr__(self) -> str:
        return "NEXT_STEPS"


#: The scope of every latent node: all variables of all later steps. Sec. 3.2: latents whose
#: root interface nodes have one scope have one scope themselves, and in a sound template all
#: of them do (Def. 8), so a single symbol stands for it before unfolding.
NEXT_STEPS: Final = NextSteps.NEXT_STEPS

Scope = frozenset[str | Literal[NextSteps.NEXT_STEPS]]
NOTHING: Scope = frozenset()


def scopes(network: Network) -> list[Scope]:
    """Return the scope of every node: the union of its children's, of a leaf itself.

    A max node also has its own decision in scope. The letter of Def. 1 leaves it out, but
    Algorithm 3 looks for decisions in scopes, and without it two factors of a product could
    make the same decision each in its own way. They are computed once for each network.
    """
    return network.scopes


def compute_scopes(network: Network) -> list[Scope]:
    """Compute the scope of every node."""
    return fold_up(network, _scope)


def _scope(node: Node, below: list[Scope]) -> Scope:
    match node:
        case Leaf() | Utility():
            return frozenset([node.variable])
        case Latent():
            return frozenset([NEXT_STEPS])
        case Max():
            return frozenset([node.decision]).union(*below)
        case Sum():
            return below[0] if all(scope == below[0] for scope in below) else NOTHING.union(*below)
        case Product():
            return NOTHING.union(*below)


def show_scope(scope: Scope) -> str:
    """Write a scope for a person, in alphabetical order."""
    return "{" + ", ".join(sorted(str(getattr(v, "value", v)) for v in scope)) + "}"
