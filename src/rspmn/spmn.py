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
from rspmn.behaviour import UNKNOWN_BEHAVIOUR, Behaviour
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
from rspmn.successor_counts import HeldOutRows, SuccessorCounts, check_range
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
    #: The least and the most that a row earned: without, the policy has no honest value.
    earned: tuple[float, ...] = ()
    #: What policies are valued by where contexts are numbers; None where they are categories.
    held_out: HeldOutRows | None = None
    #: What the logger does; without trees if that is not known.
    behaviour: Behaviour = UNKNOWN_BEHAVIOUR

    def __post_init__(self) -> None:
        refuse("SPMN", validity_violations(self.network))
        refuse("SPMN", schema_violations(self.network, self.schema, recurrent=False))
        _ = self.network.root
        self.behaviour.check_fit(self.schema)
        if self.background is not None:
            self._check_background(self.background)
        object.__setattr__(self, "rows", float(self.rows))
        if not 0 <= self.rows <= MOST_STEPS:
            raise CircuitError(f"SPMN: expected the number of rows, found {self.rows}")
        object.__setattr__(self, "usual", tuple(map(float, self.usual)))
        if any(not a <= b for a, b in pairwise(self.usual)):
            raise CircuitError(f"SPMN: usual: expected increasing numbers, found {self.usual}")
        check_range("SPMN", "earned", self.earned)

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
        policy = self.recommended if criterion is None else self.policy(criterion=criterion)
        return policy.act(state)

    @cached_property
    def recommended(self) -> "Policy":
        """The policy that `act` and `decide` follow."""
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
        safe: bool = True,
    ) -> "Policy":
        """Return the decisions to recommend as a policy of one step, with its methods.

        Parameters
        ----------
        otherwise
            The action in states that were never observed; by default, `act` raises an error there.
        criterion
            The criterion at decisions; see `rspmn.infer.criterion`.
        safe
            Whether decisions may be nearer to practice than those of maximum expected utility,
            where the rows do not support that these are better; as for `RSPMN.policy`.

        Examples
        --------
        >>> from rspmn.learn import learn_spmn
        >>> log = {"x": [0, 0, 1, 1] * 25, "a": [0, 1, 1, 0] * 25, "u": [1, 0, 1, 0] * 25}
        >>> model, _ = learn_spmn(log, Schema([["x"], ["a"]], ["a"], "u"))
        >>> found = model.policy().honest_value()
        >>> found.promise, 0.8 < found.low < found.high <= 1
        (1.0, True)
        """
        return self.as_recurrent.policy(1, otherwise=otherwise, criterion=criterion, safe=safe)

    @cached_property
    def as_recurrent(self) -> RSPMN:
        """The same model as a recurrent one, in which every episode ends after one step.

        Every part of the mixture above the first decision is an interface node.
        """
        builder, parts = NetworkBuilder(), _parts(self.network, self.schema)
        end = len(parts)

        def copy(node: Node, below: list[int]) -> int:
            if isinstance(node, Utility):
                return builder.product([builder.add(node), builder.latent(end)])
            if isinstance(node, Sum | Product | Max):
                node = replace(node, children=tuple(below))
            return builder.add(node)

        placed = fold_up(self.network, copy)
        roots = [builder.product([placed[index] for index in part]) for part in parts]
        template = builder.build(*roots, end_root(builder, self.schema, end))
        visits = (*(weight * (self.rows or 1.0) for weight in parts.values()), 0.0)
        top = weighted_top([*parts.values(), 0.0])
        counts = self._counts(template, visits) if self.earned else None
        return RSPMN(
            self.schema, top, template, visits, None, self.never_taken, counts,
            behaviour=self.behaviour,
        )  # fmt: skip

    def _counts(self, template: Network, visits: tuple[float, ...]) -> SuccessorCounts:
        """Return the rows behind the outcomes of a template."""
        from rspmn.infer.compiled.outcomes import outcomes_of

        earns = [template.nodes[at] for at in outcomes_of(template).utility.tolist()]
        known = [(k, u) for k, u in enumerate(earns) if isinstance(u, Utility) and u.count > 0]
        return SuccessorCounts(
            visits, tuple(k for k, _ in known), (len(visits) - 1,) * len(known),
            tuple(u.count for _, u in known), tuple(u.mean for _, u in known),
            tuple(u.variance for _, u in known), ending=self.earned, held_out=self.held_out,
        )  # fmt: skip

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


def _parts(network: Network, schema: Schema) -> dict[tuple[int, ...], float]:
    """Return the parts of the mixture above the first decision, and their weights.

    A part is a product of nodes. Sums without decisions are no choice between parts.
    """
    decisions, scopes, nodes = {*schema.decisions}, network.scopes, network.nodes
    found: dict[tuple[int, ...], float] = {}
    waiting: list[tuple[tuple[int, ...], float]] = [((network.root,), 1.0)]
    while waiting:
        part, weight = waiting.pop()
        above = (k for k, at in enumerate(part) if decisions & scopes[at])
        k = next((k for k in above if isinstance(nodes[part[k]], Sum | Product)), None)
        if k is None:
            found[part] = found.get(part, 0.0) + weight
            continue
        node, (before, after) = nodes[part[k]], (part[:k], part[k + 1 :])
        if isinstance(node, Sum):
            ways = zip(reversed(node.children), reversed(node.weights), strict=True)
            waiting += [((*before, at, *after), weight * share) for at, share in ways if share > 0]
        elif isinstance(node, Product):
            waiting.append(((*before, *node.children, *after), weight))
    return found
