"""The sum-product-max network with its schema: a model of a single decision problem (Sec. 2)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rspmn.availability import NeverTaken
from rspmn.circuit import (
    Leaf,
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
from rspmn.display import facts_html
from rspmn.end_nodes import end_root, weighted_top
from rspmn.errors import CircuitError
from rspmn.model import RSPMN
from rspmn.schema import Schema
from rspmn.types import Array
from rspmn.values import MOST_STEPS, Value

if TYPE_CHECKING:
    from rspmn.infer.actions import ActionValue
    from rspmn.infer.compiled.decisions import CompiledDecision
    from rspmn.infer.criterion import Criterion
    from rspmn.infer.meu import ExpectedUtility
    from rspmn.infer.policy import Policy
    from rspmn.infer.sample import Decide


@dataclass(frozen=True)
class SPMN:
    """A valid network over the variables of a schema. An invalid one raises a `CircuitError`.

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
    #: How likely the logged contexts are: log-likelihoods of what is known before the first
    #: decision, at equally spaced quantiles, the lowest first.
    usual: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        refuse("SPMN", validity_violations(self.network))
        refuse("SPMN", schema_violations(self.network, self.schema, recurrent=False))
        _ = self.network.root
        if self.background is not None:
            self._check_background(self.background)
        object.__setattr__(self, "rows", float(self.rows))
        if not 0 <= self.rows <= MOST_STEPS:
            raise CircuitError(f"SPMN: expected the number of rows, found {self.rows}")
        object.__setattr__(self, "usual", tuple(map(float, self.usual)))
        if any(not a <= b for a, b in pairwise(self.usual)):
            raise CircuitError(f"SPMN: usual: expected increasing numbers, found {self.usual}")

    def _check_background(self, background: Network) -> None:
        """Refuse what is no product of leaves, one for each of some state variables."""
        refuse("SPMN: background", validity_violations(background))
        kinds = {type(node) for node in background.nodes}
        strange = {leaf.variable for leaf in background.nodes if isinstance(leaf, Leaf)}
        strange -= set(self.schema.state_variables)
        if not kinds <= {Product, Leaf} or strange:
            found = f"{min(strange)!r}" if strange else ", ".join(sorted(k.__name__ for k in kinds))
            raise CircuitError(
                f"SPMN: background: expected a product of leaves of state variables, found {found}"
            )

    @property
    def facts(self) -> dict[str, object]:
        """Variables and sizes, as `rspmn info` shows them."""
        return {
            "state variables": list(self.schema.state_variables),
            "decisions": list(self.schema.decisions),
            "utility": self.schema.utility,
            "nodes": len(self.network),
            "edges": self.network.num_edges,
            "rows": self.rows,
        }

    def _repr_html_(self) -> str:
        return facts_html("Sum-product-max network", self.facts)

    def __repr__(self) -> str:
        return f"SPMN({len(self.network)} nodes, learned from {self.rows:g} rows)"

    # ---- queries: each calls `rspmn.infer` -----------------------------------------

    def meu(
        self, state: object = None, *, criterion: "Criterion | None" = None
    ) -> "ExpectedUtility":
        """Return the maximum expected utility given a state, or part of one.

        The state is a mapping from variables to values, a pandas Series, or a row in the schema's
        order; it may contain decisions already made. Missing variables will be observed before the
        next decision. `criterion` is the criterion at decisions; see `rspmn.infer.criterion`.

        If nothing is missing, it is the expected utility of the best decision. Otherwise, if parts
        of the network overlap, as soft classes do, it is an upper bound: that of a decision made
        with knowledge of the part.
        """
        from rspmn.infer.single_decisions import best_utility

        return best_utility(self, state, criterion)

    def action_values(
        self, state: object = None, *, criterion: "Criterion | None" = None
    ) -> "list[ActionValue]":
        """Return the expected utility of every value of the next decision, with its support.

        The decision is made now: missing variables are averaged over. For a state that the model
        excludes, the parts that fit best are used, and `supported` is 0.
        """
        from rspmn.infer.single_decisions import values_of_actions

        return values_of_actions(self, state, criterion)

    def decide(self, table: object) -> "dict[str, NDArray[Any]]":
        """Return the best decision in each row of a table of states, as columns.

        Parameters
        ----------
        table
            A table with variables observed before a decision, and earlier decisions. The decision
            to make is the first one that is not a column. Missing variables are averaged over.

        Returns
        -------
            The decision, under its own name, or None where the laws of the schema allow none; its
            expected `utility` and its standard `error`; and `usual`, the proportion of logged
            contexts that are not more likely than the row. If it is 0, the answer is a guess. A
            column whose name the decision has ends in an underscore.

        Examples
        --------
        >>> from rspmn.learn import learn_spmn
        >>> log = {"x": [1.0, 2.0, 8.0, 9.0] * 25, "a": [0, 1, 1, 0] * 25, "u": [1, 0, 1, 0] * 25}
        >>> model, _ = learn_spmn(log, Schema([["x"], ["a"]], ["a"], "u", {"x": "continuous"}))
        >>> model.decide({"x": [0.5, 8.5]})["a"].tolist()
        [0, 1]
        """
        from rspmn.infer.single_decisions import decide

        return decide(self, table)

    def act(self, state: object = None, *, criterion: "Criterion | None" = None) -> Any:
        """Return the best decision in a state: a value, or a mapping of several decisions.

        This is `Policy.act`; a state that the model excludes raises an error.
        """
        policy = self._policy if criterion is None else self.policy(criterion=criterion)
        return policy.act(state)

    @cached_property
    def _policy(self) -> "Policy":
        return self.policy()

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
        """Return the best decisions as a policy of one step, with the methods of an RSPMN's policy.

        `otherwise` is the action in states that were never observed; by default, `act` raises an
        error there.
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

        A learned model is smoothed: unobserved values are improbable, not impossible. `smoothed` is
        the weight of its `background` in rows; True means 1, and False or 0 none.
        """
        from rspmn.infer.compiled.smoothing import row_log_likelihoods

        return row_log_likelihoods(self, table, smoothed)

    def mpe(self, state: object = None) -> dict[str, Value] | None:
        """Return a state completed by the most probable values; None if it is impossible."""
        from rspmn.infer.mpe import mpe
        from rspmn.infer.single_decisions import known_of

        return mpe(self.network, known_of(self, state))

    def sample(
        self,
        rows: int,
        rng: np.random.Generator | int,
        policy: "Policy | Decide | Literal['practice'] | None" = None,
        state: object = None,
    ) -> dict[str, list[Value]]:
        """Sample rows from the model, as columns.

        Parameters
        ----------
        rows
            The number of rows.
        rng
            A random generator, or a seed.
        policy
            A `Policy`, a function as described by `rspmn.infer.Decide`, or "practice" for the
            frequencies of the log. By default, decisions are uniformly random.
        state
            Known values; the others are sampled given these.
        """
        from rspmn.infer.sample import sample_rows
        from rspmn.infer.single_decisions import known_of

        known = known_of(self, state)
        return sample_rows(self, rows, np.random.default_rng(rng), policy, known)

    def compiled(self, decision: str) -> "CompiledDecision | None":
        """Return the network as it looks from a decision; None if not all is earned after it."""
        from rspmn.infer.compiled.decisions import CompiledDecision

        if decision not in self._views:
            serves = CompiledDecision.serves(self.network, decision)
            self._views[decision] = CompiledDecision(self.network, decision) if serves else None
        return self._views[decision]

    @cached_property
    def _views(self) -> "dict[str, CompiledDecision | None]":
        return {}

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
