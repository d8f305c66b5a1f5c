"""How `learn_spn` estimates a density."""

from dataclasses import dataclass, field

from rspmn.errors import DataError
from rspmn.learn.structure.leaves import Families


@dataclass(frozen=True)
class LatentTrees:
    """A mixture of latent trees for each group of dependent variables; see docs/density.md.

    >>> LatentTrees(trees=1).states
    32
    """

    #: The number of trees that are mixed.
    trees: int = 3
    #: The number of states of each hidden variable; fewer if there are few rows.
    states: int = 32
    #: Groups of variables are merged if G-tests between them, at this level, find a dependence.
    alpha: float = 0.01
    #: The share of rows that each tree is not estimated from: they tell when to stop.
    held_out: float = 0.1
    #: The strengths of smoothing, in rows, of which the held-out rows choose one.
    pseudo_rows: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0, 3.0)
    #: Families of leaves, by variable or kind, as in `LearnConfig`.
    leaves: Families = field(default_factory=dict, hash=False)
    #: No pass over the rows begins after so many seconds.
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("trees", "states"):
            if not getattr(self, name) >= 1:
                raise DataError(
                    f"LatentTrees: {name} must be 1 or more, found {getattr(self, name)!r}"
                )
        if not 0 < self.held_out < 1:
            raise DataError(
                f"LatentTrees: held_out must be between 0 and 1, found {self.held_out!r}"
            )
        if not self.pseudo_rows or not min(self.pseudo_rows) > 0:
            raise DataError(
                f"LatentTrees: pseudo_rows must be numbers above 0, found {self.pseudo_rows!r}"
            )
