"""Circuits: what a sum-product-max network is, apart from how it is learned or run."""

from rspmn.circuit.distributions import (
    Categorical,
    Distribution,
    IntegerHistogram,
    PiecewiseLinear,
    StudentT,
    register,
)
from rspmn.circuit.latent_factors import LatentFactors
from rspmn.circuit.network import Network, NetworkBuilder
from rspmn.circuit.nodes import (
    FactoredLatents,
    Latent,
    Leaf,
    Max,
    Node,
    Product,
    Sum,
    Utility,
)
from rspmn.circuit.scope import NEXT_STEPS, Scope, scopes
from rspmn.circuit.traverse import fold_up, walk_down
from rspmn.circuit.validity import (
    Violation,
    order_violations,
    soundness_violations,
    top_violations,
    validity_violations,
)

__all__ = [
    "NEXT_STEPS", "Categorical", "Distribution", "FactoredLatents", "IntegerHistogram", "Latent",
    "LatentFactors", "Leaf", "Max", "Network", "NetworkBuilder", "Node", "PiecewiseLinear",
    "Product", "Scope", "StudentT", "Sum", "Utility", "Violation", "fold_up", "order_violations",
    "register", "scopes", "soundness_violations", "top_violations", "validity_violations",
    "walk_down",
]  # fmt: skip
