"""The sum-product-max network with its schema: a model of a single decision problem (Sec. 2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rspmn.availability import NeverTaken, label
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
from rspmn.data.columns import Column
from rspmn.display import facts_html
from rspmn.end_nodes import end_root, weighted_top
from rspmn.errors import CircuitError, EvidenceError, warn_renamed
from rspmn.model import RSPMN, Evidence
from rspmn.schema import Schema
from rspmn.types import Array, Bools
from rspmn.values import MOST_STEPS, Value

if TYPE_CHECKING:
    from rspmn.infer.actions import ActionValue
    from rspmn.infer.compiled.decisions import CompiledDecision, Worths
    from rspmn.infer.criterion import Criterion
    from rspmn.infer.evidence import Known
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
        order; it may hold decisions already made. What it lacks will be observed before the
        decision that comes after it. `criterion` is the rule at decisions; see
        `rspmn.infer.criterion`.

        If nothing is lacking it is the utility of the best decision. Otherwise, where the parts of
        the network overlap, as soft classes do, it is an upper bound: that of a decision made with
        knowledge of the part.
        """
        from rspmn.infer.actions import best_among
        from rspmn.infer.criterion import MEU
        from rspmn.infer.meu import ExpectedUtility, meu

        known = self._known(state)
        found = meu(self.network, known, criterion=criterion or MEU)
        if criterion is None and found.supported and self._is_whole(known):
            best = best_among(self.action_values(known))[0]
            return ExpectedUtility(best.utility, best.supported, best.steps)
        return found

    def action_values(
        self, state: object = None, *, criterion: "Criterion | None" = None
    ) -> "list[ActionValue]":
        """Return the expected utility of every value of the next decision, with its support.

        The decision is made now: what the state lacks is averaged over. A state that the model
        excludes is answered by the parts of it that fit best, and `supported` is 0.
        """
        from rspmn.infer.actions import action_values
        from rspmn.infer.criterion import MEU
        from rspmn.infer.lawful import checked

        known = self._known(state)
        asked = self._next_decision(known)
        compiled = None if asked is None or criterion is not None else self._compiled(asked)
        if compiled is None or any(name not in compiled.variables for name in known):
            answers = action_values(self.network, known, asked, criterion=criterion or MEU)
            return checked(answers, known, self)
        found = compiled(compiled.context(known))
        missing = compiled.missing(known)
        usual = self._usual(found, compiled.decision, not missing)[0]
        return checked(found.answers(0, missing, float(usual)), known, self)

    def decide(self, table: object) -> "dict[str, NDArray[Any]]":
        """Return what to do in each row of a table of states, as columns.

        Parameters
        ----------
        table
            A table with some of the variables that are known before a decision, and the decisions
            before it; the decision asked for is the first that is not a column. What a row lacks is
            averaged over.

        Returns
        -------
            The decision, under its own name; its expected `utility` and the standard `error` of
            that; `usual`, the share of logged contexts that are no likelier than the row. Where
            it is 0, the answer is a guess.

        Examples
        --------
        >>> from rspmn.learn import learn_spmn
        >>> log = {"x": [1.0, 2.0, 8.0, 9.0] * 25, "a": [0, 1, 1, 0] * 25, "u": [1, 0, 1, 0] * 25}
        >>> model, _ = learn_spmn(log, Schema([["x"], ["a"]], ["a"], "u", {"x": "continuous"}))
        >>> model.decide({"x": [0.5, 8.5]})["a"].tolist()
        [0, 1]
        """
        from rspmn.data.tables import as_table
        from rspmn.infer.evidence import check_columns

        rows = as_table(table)
        names = [name for name in rows.names if name in self.schema.variables]
        check_columns(names, self.network)
        asked = next((d for d in self.schema.decisions if d not in names), None)
        compiled = None if asked is None else self._compiled(asked)
        if compiled is None:
            raise EvidenceError("no decision is left to make, or not all is earned after it")
        known = [name for name in names if name in compiled.variables]
        columns = {name: rows.coded(name, self.schema.kinds.get(name)) for name in known}
        found = self._lawful(compiled(compiled.contexts(columns, rows.rows)), columns)
        whole = ~np.any([column.missing for column in columns.values()], axis=0)
        whole &= all(name in columns for name in self.schema.known_before(compiled.decision))
        each = np.arange(rows.rows), found.best
        return {
            compiled.decision: _as_array(found.values)[found.best],
            "utility": found.utility[each],
            "error": np.sqrt(found.variance[each]),
            "usual": self._usual(found, compiled.decision, whole),
        }

    def act(self, state: object = None, *, criterion: "Criterion | None" = None) -> Any:
        """Return what to do in a state: a value, or a mapping of several decisions to make now.

        This is `Policy.act`; a state that the model excludes is an error.
        """
        policy = self._policy if criterion is None else self.policy(criterion=criterion)
        return policy.act(state)

    @cached_property
    def _policy(self) -> "Policy":
        return self.policy()

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

        return mpe(self.network, self._known(state))

    def sample(
        self,
        rows: int,
        rng: np.random.Generator | int,
        policy: "Policy | Decide | Literal['practice'] | None" = None,
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
            Makes the decisions: a `Policy`, or a function as `rspmn.infer.Decide` describes it;
            "practice" decides in the shares of the log. If not given, decisions are uniform.
        state
            Known values; the others are drawn given these.
        """
        from rspmn.infer.sample import sample_rows

        known = self._known(state)
        return sample_rows(self, rows, np.random.default_rng(rng), policy, known)

    def _known(self, state: object) -> "Known":
        from rspmn.infer.evidence import as_state, known_values

        return {} if state is None else known_values(as_state(state, self.schema), self.network)

    def _next_decision(self, known: Evidence) -> str | None:
        return next((name for name in self.schema.decisions if name not in known), None)

    def _is_whole(self, known: Evidence) -> bool:
        """Tell whether what is known is all that is known before the next decision, and no more."""
        asked = self._next_decision(known)
        return asked is not None and set(known) == set(self.schema.known_before(asked))

    def _compiled(self, decision: str) -> "CompiledDecision | None":
        """Return the network as it looks from a decision; None if not all is earned after it."""
        from rspmn.infer.compiled.decisions import CompiledDecision

        if decision not in self._views:
            serves = CompiledDecision.serves(self.network, decision)
            self._views[decision] = CompiledDecision(self.network, decision) if serves else None
        return self._views[decision]

    def _lawful(self, found: "Worths", columns: Mapping[str, Column]) -> "Worths":
        """Return what decisions are worth, those that laws forbid in a row not being available."""
        available = found.available.copy()
        for law in self.schema.laws:
            if law.decision == found.decision and all(name in columns for name in law.variables):
                named = [k for k, value in enumerate(found.values) if label(value) == law.value]
                holds = law.holds({n: columns[n].for_expressions() for n in law.variables})
                available[~holds] = np.where(
                    np.isin(np.arange(len(found.values)), named), 0.0, available[~holds]
                )
        return replace(found, available=available)

    @cached_property
    def _views(self) -> "dict[str, CompiledDecision | None]":
        return {}

    def _usual(self, found: "Worths", decision: str, whole: bool | Bools) -> Array:  # [rows]
        """Return how usual contexts are; only those of the first decision can be compared."""
        usual = np.where(found.possible, 1.0, 0.0)
        if not self.usual or decision != self.schema.decisions[0]:
            return usual
        logs = found.log_likelihood + 1e-9 * (1 + np.abs(found.log_likelihood))
        share = np.searchsorted(np.array(self.usual), logs, side="right") / len(self.usual)
        return np.asarray(np.where(whole & found.possible, share, usual))

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


def _as_array(values: Sequence[Value]) -> NDArray[Any]:
    """Return values as an array of their own type, or of objects if they are mixed."""
    if len({type(value) for value in values}) == 1:
        return np.array(values)
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found
