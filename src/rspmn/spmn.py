"""The sum-product-max network with its schema: a model of a single decision problem (Sec. 2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rspmn.circuit import Network, NetworkBuilder, validity_violations
from rspmn.circuit.schema_fit import schema_violations
from rspmn.circuit.validity import refuse
from rspmn.errors import CircuitError
from rspmn.schema import Schema
from rspmn.types import Array
from rspmn.values import Value

if TYPE_CHECKING:
    from rspmn.infer.actions import ActionValue, ExpectedUtility
    from rspmn.infer.sample import Decide


@dataclass(frozen=True)
class SPMN:
    """A valid network over the variables of a schema. One that is not valid is refused.

    The queries are defined in `rspmn.infer`; the methods call them.
    """

    schema: Schema
    network: Network
    #: What is known of the state variables apart from each other. For the likelihood of rows it is
    #: mixed in with the weight of one row, so that no row is impossible; decisions do not use it.
    background: Network | None = None
    rows: float = 0.0  # the weight of the rows it was learned from

    def __post_init__(self) -> None:
        refuse("SPMN", validity_violations(self.network))
        refuse("SPMN", schema_violations(self.network, self.schema, recurrent=False))
        _ = self.network.root
        object.__setattr__(self, "rows", float(self.rows))
        if not 0 <= self.rows < float("inf"):
            raise CircuitError(f"SPMN: expected the number of rows, found {self.rows}")

    def __repr__(self) -> str:
        return f"SPMN({len(self.network)} nodes, learned from {self.rows:g} rows)"

    def meu(self, evidence: Mapping[str, object] | None = None) -> "ExpectedUtility":
        """Return the maximum expected utility given evidence."""
        from rspmn.infer.actions import meu

        return meu(self.network, evidence)

    def expected_utilities(
        self, evidence: Mapping[str, object] | None = None
    ) -> "list[ActionValue]":
        """Return what every value of the next decision is worth, with its support."""
        from rspmn.infer.actions import expected_utilities

        made = {} if evidence is None else evidence
        asked = next((d for d in self.schema.decisions if made.get(d) is None), None)
        return expected_utilities(self.network, evidence, asked)

    def best_decisions(self, evidence: Mapping[str, object] | None = None) -> "list[ActionValue]":
        """Return every best value of the next decision; the first is as good as any."""
        from rspmn.infer.actions import best_among

        return best_among(self.expected_utilities(evidence))

    def log_likelihood(self, table: object, smoothed: bool | float = True) -> Array:  # [rows]
        """Return the log-likelihood of each row of a table, given its decisions.

        A learned model is smoothed: what it never saw is improbable, not impossible. `smoothed` is
        the weight of its `background` in rows; True is one, and False or 0 is none.
        """
        from rspmn.infer.compiled.smoothing import row_log_likelihoods

        return row_log_likelihoods(self, table, smoothed)

    def mpe(self, evidence: Mapping[str, object]) -> dict[str, Value] | None:
        """Return the evidence with the likeliest values for what it lacks."""
        from rspmn.infer.mpe import mpe

        return mpe(self.network, evidence)

    def sample(
        self,
        rows: int,
        rng: np.random.Generator | int,
        policy: "Decide | None" = None,
        evidence: Mapping[str, object] | None = None,
    ) -> dict[str, list[Value]]:
        """Draw rows as columns, given evidence; decisions are uniform unless `policy` makes them.

        `policy` is a function as `rspmn.infer.Decide` describes it.
        """
        from rspmn.infer.sample import sample_rows

        return sample_rows(self, rows, np.random.default_rng(rng), policy, evidence)

    def save(self, path: str | Path) -> None:
        """Write the model as JSON, gzipped when the name ends in .gz; whole or not at all."""
        from rspmn.model_file import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> "SPMN":
        """Read a model and check that it is valid."""
        from rspmn.model_file import load_spmn

        return load_spmn(path)


def factorised(leaves: Sequence[int], builder: NetworkBuilder) -> Network:
    """Return the network in which all variables are independent."""
    return builder.build(builder.product(leaves))
