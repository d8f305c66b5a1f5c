"""The sum-product-max network with its schema: a model of a single decision problem (Sec. 2)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rspmn.availability import NeverTaken
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
from rspmn.circuit.validity import refuse, schema_violations
from rspmn.end_nodes import end_root, weighted_top
from rspmn.errors import CircuitError, warn_renamed
from rspmn.model import RSPMN, Evidence
from rspmn.schema import Schema
from rspmn.types import Array
from rspmn.values import Value, is_missing

if TYPE_CHECKING:
    from rspmn.infer.actions import ActionValue
    from rspmn.infer.criterion import Criterion
    from rspmn.infer.meu import ExpectedUtility
    from rspmn.infer.policy import Policy
    from rspmn.infer.sample import Decide


@dataclass(frozen=True)
class SPMN:
    """A valid network over the variables of a schema. One that is not valid is refused.

    The queries are defined in `rspmn.infer`; the methods call them.
    """

    schema: Schema
    network: Network
    #: The state variables as if they were independent. The likelihood of rows is smoothed with it,
    #: so that no row is impossible; decisions do not use it.
    background: Network | None = None
    rows: float = 0.0  # the weight of the rows it was learned from
    #: Where the rows never took a decision that the network may offer there; answers say so.
    never_taken: tuple[NeverTaken, ...] = ()

    def __post_init__(self) -> None:
        refuse("SPMN", validity_violations(self.network))
        refuse("SPMN", schema_violations(self.network, self.schema, recurrent=False))
        _ = self.network.root
        object.__setattr__(self, "rows", float(self.rows))
        if not 0 <= self.rows < float("inf"):
            raise CircuitError(f"SPMN: expected the number of rows, found {self.rows}")

    def __repr__(self) -> str:
        return f"SPMN({len(self.network)} nodes, learned from {self.rows:g} rows)"

    # ---- queries: each calls `rspmn.infer` -----------------------------------------

    def meu(
        self, state: object = None, *, criterion: "Criterion | None" = None
    ) -> "ExpectedUtility":
        """Return the maximum expected utility given a state, or part of one.

        The state is a mapping from variables to values, a pandas Series, or a row in the schema's
        order; it may hold decisions already made. What it lacks will be observed before the
        decision that comes after it. `criterion` is the rule at decisions; see
        `rspmn.infer.criterion`.
        """
        from rspmn.infer.criterion import MEU
        from rspmn.infer.meu import meu

        return meu(self.network, self._evidence(state), criterion=criterion or MEU)

    def action_values(
        self, state: object = None, *, criterion: "Criterion | None" = None
    ) -> "list[ActionValue]":
        """Return the expected utility of every value of the next decision, with its support.

        The decision is made now: what the state lacks is averaged over.
        """
        from rspmn.infer.actions import action_values, checked
        from rspmn.infer.criterion import MEU

        known = self._evidence(state)
        asked = next((d for d in self.schema.decisions if is_missing(known.get(d))), None)
        found = action_values(self.network, known, asked, criterion=criterion or MEU)
        return checked(found, known, self)

    def act(self, state: object = None, *, criterion: "Criterion | None" = None) -> Any:
        """Return what to do in a state: a value, or a mapping of several decisions to make now.

        This is `Policy.act`, for one question; a state that the model never saw is an error.
        """
        return self.policy(criterion=criterion).act(state)

    def expected_utilities(self, state: object = None) -> "list[ActionValue]":
        """Call `action_values`, its new name."""
        warn_renamed("expected_utilities", "action_values")
        return self.action_values(state)

    def best_decisions(
        self, state: object = None, *, criterion: "Criterion | None" = None
    ) -> "list[ActionValue]":
        """Return all best values of the next decision, ties included; the first is to be chosen."""
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
        """The same model as a recurrent one, in which every episode ends after one step.

        Every part of the mixture at the root is an interface node.
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
        top = weighted_top([*parts.values(), 0.0])
        return RSPMN(self.schema, top, template, (*visits, 0.0), None, self.never_taken)

    def log_likelihood(self, table: object, smoothed: bool | float = True) -> Array:  # [rows]
        """Return the log-likelihood of each row of a table, given its decisions.

        A learned model is smoothed: what it never saw is improbable, not impossible. `smoothed` is
        the weight of its `background` in rows; True is one, and False or 0 is none.
        """
        from rspmn.infer.compiled.smoothing import row_log_likelihoods

        return row_log_likelihoods(self, table, smoothed)

    def mpe(self, state: object = None) -> dict[str, Value] | None:
        """Return a state completed by the most probable values; None if it is impossible."""
        from rspmn.infer.mpe import mpe

        return mpe(self.network, self._evidence(state))

    def sample(
        self,
        rows: int,
        rng: np.random.Generator | int,
        policy: "Policy | Decide | None" = None,
        state: object = None,
    ) -> dict[str, list[Value]]:
        """Draw rows from the model, as columns.

        Parameters
        ----------
        rows
            The number of rows.
        rng
            A generator, or a seed for one.
        policy
            Makes the decisions: a `Policy`, or a function as `rspmn.infer.Decide` describes it.
            If not given, decisions are uniform.
        state
            Known values; the others are drawn given these.
        """
        from rspmn.infer.sample import sample_rows

        known = self._evidence(state)
        return sample_rows(self, rows, np.random.default_rng(rng), policy, known)

    def _evidence(self, state: object) -> Evidence:
        from rspmn.infer.evidence import as_state

        return {} if state is None else as_state(state, self.schema)

    # ---- files ---------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the model as JSON, gzipped if the name ends in .gz, atomically."""
        from rspmn.model_file import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> "SPMN":
        """Read a model and check that it is valid."""
        from rspmn.model_file import load_spmn

        return load_spmn(path)


def _parts(network: Network) -> dict[int, float]:
    """Return the parts of the mixture that the sums at a network's root make, and their weights."""
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
