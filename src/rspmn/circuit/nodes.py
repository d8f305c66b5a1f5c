"""The kinds of nodes (Sec. 2, Def. 6), immutable and checked when they are made.

A node refers to its children by their index in the `Network`.
"""

from dataclasses import dataclass, field
from operator import index

from rspmn.circuit.distributions import Distribution, check_simplex
from rspmn.circuit.latent_factors import LatentFactors
from rspmn.errors import CircuitError
from rspmn.values import LARGEST_UTILITY, MOST_STEPS, Value, as_value, show

#: The numbers of a utility, and the range of each.
UTILITY_RANGES = (
    ("mean", -LARGEST_UTILITY, LARGEST_UTILITY),
    ("count", 0.0, MOST_STEPS),
    ("variance", 0.0, LARGEST_UTILITY**2),
)


@dataclass(frozen=True, slots=True)
class Sum:
    """A weighted sum of its children: a mixture over a hidden or observed variable."""

    children: tuple[int, ...]  # [n]
    weights: tuple[float, ...]  # [n], sums to 1

    def __post_init__(self) -> None:
        _normalise_children(self)
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

    def __post_init__(self) -> None:
        _normalise_children(self)


@dataclass(frozen=True, slots=True)
class Max:
    """A decision: one child for each value that can be chosen here."""

    decision: str
    values: tuple[Value, ...]  # [n], distinct
    children: tuple[int, ...]  # [n]
    types: tuple[type, ...] = field(init=False, repr=False)  # as in Categorical

    def __post_init__(self) -> None:
        where = f"Max({self.decision!r})"
        if not self.decision:
            raise CircuitError("Max: expected the name of a decision, found ''")
        _normalise_children(self)
        plain = tuple(as_value(value, where, CircuitError) for value in self.values)
        object.__setattr__(self, "values", plain)
        if not self.children:
            raise CircuitError(f"{where}: expected at least one child, found none")
        if len(self.values) != len(self.children):
            raise CircuitError(
                f"{where}: {len(self.values)} values but {len(self.children)} children"
            )
        if len(set(self.values)) != len(self.values):
            again = next(v for i, v in enumerate(self.values) if v in self.values[:i])
            raise CircuitError(f"{where}: duplicate value {show(again)}")
        object.__setattr__(self, "types", tuple(map(type, self.values)))


@dataclass(frozen=True, slots=True)
class Leaf:
    """The distribution of one random variable."""

    variable: str
    distribution: Distribution

    def __post_init__(self) -> None:
        if not self.variable:
            raise CircuitError("Leaf: expected the name of a variable, found ''")
        if not isinstance(self.distribution, Distribution):
            raise CircuitError(
                f"Leaf({self.variable!r}): expected a distribution such as Categorical.certain(1), "
                f"found {self.distribution!r}"
            )

    @property
    def children(self) -> tuple[int, ...]:
        """Return no children: this is a leaf."""
        return ()


@dataclass(frozen=True, slots=True)
class Utility:
    """A utility: the mean of the rewards, and how well it is known."""

    variable: str
    mean: float
    count: float = 0.0  # logged steps behind the mean; 0 when written by hand
    variance: float = 0.0  # of the single rewards, not of the mean

    def __post_init__(self) -> None:
        if not self.variable:
            raise CircuitError("Utility: expected the name of the utility, found ''")
        for name, least, most in UTILITY_RANGES:
            found = getattr(self, name)
            number = float(found)
            if not least <= number <= most:
                raise CircuitError(
                    f"Utility({self.variable!r}): expected a {name} from {least:.3g} to "
                    f"{most:.3g}, found {number}"
                )
            if number is not found:
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
        if type(self.interface) is not int or self.interface < 0:
            raise CircuitError(f"Latent: expected an index of at least 0, found {self.interface!r}")

    @property
    def children(self) -> tuple[int, ...]:
        """Return no children: this is a leaf."""
        return ()


@dataclass(frozen=True, slots=True)
class FactoredLatents:
    """A sum over all latents whose weights are a product of factors, not multiplied out.

    It equals `Sum` over `Latent(i)` with the weights `factors.weights(rows)`.
    """

    factors: LatentFactors
    rows: tuple[int, ...]  # [components], the row of each table

    def __post_init__(self) -> None:
        self.factors.check_rows(self.rows)

    @property
    def children(self) -> tuple[int, ...]:
        """Return no children: latents are named by the factors."""
        return ()

    def latent_weights(self) -> list[float]:  # [interfaces]
        """Return the weight of each interface node of the next step."""
        return [float(weight) for weight in self.factors.weights(self.rows)]


Node = Sum | Product | Max | Leaf | Utility | Latent | FactoredLatents


def _normalise_children(node: Sum | Product | Max) -> None:
    """Make the children a tuple of indices; refuse anything else."""
    if type(node.children) is tuple and set(map(type, node.children)) <= {int}:
        return
    try:
        children = tuple(map(index, node.children))
    except TypeError:
        raise CircuitError(
            f"{type(node).__name__}: expected children by their index, found {node.children!r}"
        ) from None
    object.__setattr__(node, "children", children)
