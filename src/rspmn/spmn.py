"""The sum-product-max network with its schema: a model of a single decision problem (Sec. 2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rspmn.circuit import (
    Max,
    Network,
    NetworkBuilder,
    Node,
    Product,
    Sum,
    Utility,
    fold_up,
    validity_violations,
)
from rspmn.circuit.schema_fit import schema_violations
from rspmn.circuit.validity import refuse
from rspmn.end_nodes import end_root, weighted_top
from rspmn.errors import CircuitError, warn_renamed
from rspmn.model import RSPMN
from rspmn.schema import Schema
from rspmn.types import Array
from rspmn.values import Value, is_missing

if TYPE_CHECKING:
    from rspmn.infer.actions import ActionValue, ExpectedUtility
    from rspmn.infer.criterion import Criterion
    from rspmn.infer.policy import Policy
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

    def meu(
        self, state: object = None, *, criterion: "Criterion | None" = None
    ) -> "ExpectedUtility":
        """Return the maximum expected utility given a state, or part of one.

        The state is a mapping from variables to values, a pandas Series, or a row in the schema's
        order; it may hold decisions already made. What it lacks will be observed before the
        decision that comes after it. `criterion` is the rule at decisions; see
        `rspmn.infer.criterion`.
        """
        from rspmn.infer.actions import meu
        from rspmn.infer.criterion import MEU
        from rspmn.infer.evidence import as_state

        known = {} if state is None else as_state(state, self.schema)
        return meu(self.network, known, criterion=criterion or MEU)

    def action_values(
        self, state: object = None, *, criterion: "Criterion | None" = None
    ) -> "list[ActionValue]":
        """Return what every value of the next decision is worth, with its support.

        The decision is made now: what the state lacks is averaged over.
        """
        from rspmn.infer.actions import action_values
        from rspmn.infer.criterion import MEU
        from rspmn.infer.evidence import as_state

        known = {} if state is None else as_state(state, self.schema)
        asked = next((d for d in self.schema.decisions if is_missing(known.get(d))), None)
        return action_values(self.network, known, asked, criterion=criterion or MEU)

    def expected_utilities(self, state: object = None) -> "list[ActionValue]":
        """Call `action_values`, its new name."""
        warn_renamed("expected_utilities", "action_values")
        return self.action_values(state)

    def best_decisions(
        self, state: object = None, *, criterion: "Criterion | None" = None
    ) -> "list[ActionValue]":
        """Return every best value of the next decision; the first is the one to choose."""
        from rspmn.infer.actions import best_among

        return best_among(self.action_values(state, criterion=criterion))

    def policy(
        self,
        otherwise: "Value | Mapping[str, Value] | None" = None,
        *,
        criterion: "Criterion | None" = None,
    ) -> "Policy":
        """Return the best decisions: a policy of one step, with the same answers as an RSPMN's.

        `otherwise` is what to do in states that the model never saw; without it, asking for a
        decision there is an error.
        """
        from rspmn.infer.criterion import MEU
        from rspmn.infer.policy import Policy

        return Policy(self.as_recurrent, 1, otherwise=otherwise, criterion=criterion or MEU)

    @cached_property
    def as_recurrent(self) -> RSPMN:
        """The same model as a recurrent one, in which each episode ends after a step.

        What the sums at the root divide becomes an interface node each.
        """
        builder, parts = NetworkBuilder(), _parts(self.network)
        end = len(parts)

        def copy(node: Node, below: list[int]) -> int:
            if isinstance(node, Utility):
                return builder.product([builder.add(node), builder.latent(end)])
            if isinstance(node, Sum | Product | Max):
                node = replace(node, children=tuple(below))
            return builder.add(node)

        placed = fold_up(self.network, copy)
        roots = [placed[index] for index in parts]
        template = builder.build(*roots, end_root(builder, self.schema, end))
        visits = [weight * (self.rows or 1.0) for weight in parts.values()]
        return RSPMN(self.schema, weighted_top([*parts.values(), 0.0]), template, (*visits, 0.0))

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
        policy: "Policy | Decide | None" = None,
        state: Mapping[str, object] | None = None,
    ) -> dict[str, list[Value]]:
        """Draw rows as columns, given a state; decisions are uniform unless `policy` makes them.

        `policy` is a `Policy`, or a function as `rspmn.infer.Decide` describes it.
        """
        from rspmn.infer.sample import sample_rows

        return sample_rows(self, rows, np.random.default_rng(rng), policy, state)

    def save(self, path: str | Path) -> None:
        """Write the model as JSON, gzipped when the name ends in .gz; whole or not at all."""
        from rspmn.model_file import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> "SPMN":
        """Read a model and check that it is valid."""
        from rspmn.model_file import load_spmn

        return load_spmn(path)


def _parts(network: Network) -> dict[int, float]:
    """Return what the sums at a network's root divide, with the weight of each."""
    parts = {network.root: 1.0}
    while any(isinstance(network.nodes[index], Sum) for index in parts):
        divided: dict[int, float] = {}
        for index, weight in parts.items():
            node = network.nodes[index]
            children = {index: 1.0}
            if isinstance(node, Sum):
                children = dict(zip(node.children, node.weights, strict=True))
            for child, share in children.items():
                if share > 0:
                    divided[child] = divided.get(child, 0.0) + weight * share
        parts = divided
    return parts


def factorised(leaves: Sequence[int], builder: NetworkBuilder) -> Network:
    """Return the network in which all variables are independent."""
    return builder.build(builder.product(leaves))
