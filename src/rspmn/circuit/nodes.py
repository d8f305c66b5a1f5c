"""The six kinds of nodes (Sec. 2 and Def. 6), as values that cannot be built wrong.

A node names its children by their index in the `Network` that holds it.
"""

import math
from dataclasses import dataclass, field

from rspmn.circuit.distributions import Distribution, check_simplex
from rspmn.errors import CircuitError
from rspmn.values import Value, show

__all__ = ["Latent", "Leaf", "Max", "Node", "Product", "Sum", "Utility"]


@dataclass(frozen=True, slots=True)
class Sum:
    """A weighted sum of its children: a mixture, a hidden or observed choice by chance."""

    children: tuple[int, ...]  # [n]
    weights: tuple[float, ...]  # [n], sums to 1

    def __post_init__(self) -> None:
        if not self.children:
            raise CircuitError("Sum: expected at least one child, found none")
        if len(self.children) != len(self.weights):
            raise CircuitError(
                f"Sum: {len(self.children)} children but {len(self.weights)} weights"
            )
        object.__setattr__(self, "weights", tuple(map(float, self.weights)))
        check_simplex("Sum weights", self.weights)


@dataclass(frozen=True, slots=True)
class Product:
    """A product of independent parts. With no children it is the constant 1."""

    children: tuple[int, ...]  # [n]


@dataclass(frozen=True, slots=True)
class Max:
    """A decision: one child per value that the decision can take here."""

    decision: str
    values: tuple[Value, ...]  # [n], distinct
    children: tuple[int, ...]  # [n]
    types: tuple[type, ...] = field(init=False, repr=False)  # as in Categorical

    def __post_init__(self) -> None:
        where = f"Max({self.decision!r})"
        if not self.decision:
            raise CircuitError("Max: expected the name of a decision, found ''")
        if not self.children:
            raise CircuitError(f"{where}: expected at least one child, found none")
        if len(self.values) != len(self.children):
            raise CircuitError(
                f"{where}: {len(self.values)} values but {len(self.children)} children"
            )
        if len(set(self.values)) != len(self.values):
            twice = next(v for i, v in enumerate(self.values) if v in self.values[:i])
            raise CircuitError(f"{where}: value {show(twice)} stands twice")
        object.__setattr__(self, "types", tuple(map(type, self.values)))


@dataclass(frozen=True, slots=True)
class Leaf:
    """The distribution of one random variable."""

    variable: str
    distribution: Distribution

    def __post_init__(self) -> None:
        if not self.variable:
            raise CircuitError("Leaf: expected the name of a variable, found ''")

    @property
    def children(self) -> tuple[int, ...]:
        """Return no children: this is a leaf."""
        return ()


@dataclass(frozen=True, slots=True)
class Utility:
    """A utility: the mean of what was earned, and how well it is known."""

    variable: str
    mean: float
    count: float = 0.0  # logged steps behind the mean; 0 when written by hand
    variance: float = 0.0  # of the single rewards, not of the mean

    def __post_init__(self) -> None:
        where = f"Utility({self.variable!r})"
        if not self.variable:
            raise CircuitError("Utility: expected the name of the utility, found ''")
        for name in ("mean", "count", "variance"):
            number = float(getattr(self, name))
            if not math.isfinite(number) or (name != "mean" and number < 0):
                least = "" if name == "mean" else " of at least 0"
                raise CircuitError(f"{where}: expected a finite {name}{least}, found {number}")
            object.__setattr__(self, name, number)

    @property
    def children(self) -> tuple[int, ...]:
        """Return no children: this is a leaf."""
        return ()


@dataclass(frozen=True, slots=True)
class Latent:
    """Interface node i of the next step: where the template recurs (Def. 6)."""

    interface: int

    def __post_init__(self) -> None:
        if self.interface < 0:
            raise CircuitError(f"Latent: expected an index of at least 0, found {self.interface}")

    @property
    def children(self) -> tuple[int, ...]:
        """Return no children: this is a leaf."""
        return ()


Node = Sum | Product | Max | Leaf | Utility | Latent
