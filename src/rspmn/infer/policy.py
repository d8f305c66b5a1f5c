"""Policies: what to do in each state, over a horizon or for ever.

Over a horizon the best choice hangs on the steps to go, so a policy knows its horizon and takes
the time step. States are found by tables and values are arrays; what the tables cannot answer, as
evidence on variables between decisions, goes through the network.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.circuit import Latent, Max, Product, Sum, Utility
from rspmn.data.tables import as_table
from rspmn.errors import EvidenceError
from rspmn.infer import actions
from rspmn.infer.actions import ActionValue, best_among
from rspmn.infer.compiled.infinite_horizon import limit
from rspmn.infer.compiled.state_index import StateIndex
from rspmn.infer.evidence import Known, known_values
from rspmn.infer.meu import TIE, Evaluation
from rspmn.infer.recurrent import check_steps
from rspmn.model import RSPMN, Evidence
from rspmn.schema import Schema
from rspmn.types import Array, Ints
from rspmn.values import Mark, Value, as_value, is_missing, show

#: Of so many different steps to go the values of all branches are kept.
KEPT = 64


class Policy:
    """The best decisions of a model. Made by `RSPMN.policy`.

    Parameters
    ----------
    model
        The model.
    horizon
        The steps of an episode, or None: for ever.
    discount
        Per step.
    otherwise
        What `act` answers in a state that the model never saw; without it that is an error.
    allow_untried
        Whether it may choose what was never tried in a state.
    """

    def __init__(
        self,
        model: RSPMN,
        horizon: int | None = None,
        discount: float = 1.0,
        otherwise: Value | Mapping[str, Value] | None = None,
        allow_untried: bool = False,
    ) -> None:
        self.allow_untried = allow_untried and model.untried is not None
        self._without_hopes = model
        model = model.with_untried() if allow_untried else model
        if not 0 <= discount <= 1:
            raise EvidenceError(f"discount: expected a number from 0 to 1, found {discount}")
        several = len(model.schema.decisions) > 1
        if otherwise is not None and several != isinstance(otherwise, Mapping):
            expected = f"values for {list(model.schema.decisions)}" if several else "one value"
            raise EvidenceError(f"otherwise: expected {expected}, found {otherwise!r}")
        self.model, self.horizon, self.discount = model, horizon, discount
        self.otherwise = otherwise
        self.bound = 0.0  # how far values without a horizon may be off
        self._bellman = model.bellman
        if horizon is None:
            values, self.bound = limit(model, discount)
            self._values = values[None, :]
        else:
            self._values = self._bellman.values(check_steps(horizon, least=1) - 1, discount)
        self._index = StateIndex(model)
        self._first = [_first_decision(model, root) for root in model.template.roots]
        self._place = {
            int(node): (level, k)
            for level, found in enumerate(self._bellman.levels)
            for k, node in enumerate(found.nodes)
        }
        self._together = _made_together(model.schema)
        self._kept: dict[int, list[Array]] = {}
        self._kept_bests: dict[int, list[tuple[Array, list[int]]]] = {}
        self._domains: dict[str, list[Value]] = {}  # of each decision, all values offered anywhere

    def __repr__(self) -> str:
        steps = "for ever" if self.horizon is None else f"{self.horizon} steps"
        return f"Policy({steps}, discount {self.discount:g}, {self.model!r})"

    # ---- questions -----------------------------------------------------------------

    def act(self, state: Evidence, t: int = 0) -> Any:
        """Return what to do in a state at time t.

        Returned is a value; with several decisions in a step, a mapping of those to make now: all
        up to the next variable that is seen between two decisions. Decisions already made in this
        step stand in the state.
        """
        known = self._known(state)
        self._offered(known)  # refuses a state in which nothing is left to decide
        node = self._certain_node(known)
        made: dict[str, Value] = {}
        if node is not None and self._first[node] is not None:
            made, _ = self.choices(node, t)
        if node is None or len(made) < len(self._together):
            made = self._act_by_network(known, t)
        if not made:
            return self._unseen(known)
        return made if len(self.model.schema.decisions) > 1 else next(iter(made.values()))

    def action_values(self, state: Evidence, t: int = 0) -> list[ActionValue]:
        """Return what every value of the next decision is worth, with its support."""
        known = self._known(state)
        node = self._certain_node(known)
        offered = self._offered(known)
        if node is None or self._first[node] is None:
            found = {a.value: a for a in self._by_network(known, t)}
        else:
            found = {a.value: a for a in self._by_node(node, t)}
        decision = offered[0]
        answers = [
            found.get(value, ActionValue(decision, value, math.nan, 0.0, 0.0))
            for value in offered[1]
        ]
        if not self.allow_untried:
            return answers
        first = next(n for n in self.model.schema.decisions if n not in known)
        alone = actions.expected_utilities(self._without_hopes.from_anywhere, known, first)
        return actions.hopes_marked(answers, alone)

    def act_many(
        self, states: object, t: int = 0, otherwise: Value | Mapping[str, Value] | None = None
    ) -> Any:
        """Return what to do in each row of a table of states: an array of values.

        With several decisions in a step, a mapping of arrays. `otherwise` is the answer for states
        that the model never saw, if the policy itself has none.
        """
        return next(self.plan(states, [t], otherwise))

    def plan(
        self,
        states: object,
        times: Iterable[int],
        otherwise: Value | Mapping[str, Value] | None = None,
    ) -> Iterator[Any]:
        """Return what to do in each row of a table of states at each of some times.

        As `act_many`, but which interface nodes the states are in is found once.
        """
        names = self.model.schema.decisions
        table = as_table(states)
        later = [n for n in self.model.schema.variables if n not in self._index.names]
        if any(name in table.names for name in later[:-1]):
            raise EvidenceError(
                f"act_many takes states only, {list(self._index.names)}: with decisions made or "
                "things seen after them ask act for each row"
            )
        row, scores, distinct = self._index.routes(table)
        fallback = self.otherwise if otherwise is None else otherwise
        possible = scores > -math.inf
        count = possible.sum(axis=0).tolist()
        nodes = possible.argmax(axis=0).tolist()
        for t in times:
            by_node: dict[int, dict[str, Value]] = {}
            answers: list[dict[str, Value]] = []
            for k, node in enumerate(nodes):
                made = self._made(count[k], node, by_node, distinct[k], t)
                if not made and fallback is not None:
                    made = dict(fallback) if isinstance(fallback, Mapping) else {names[0]: fallback}
                answers.append(made or self._unseen(distinct[k]))
            found = {name: _array([a.get(name) for a in answers])[row] for name in names}
            yield found if len(names) > 1 else found[names[0]]

    def _made(
        self, possible: int, node: int, by_node: dict[int, dict[str, Value]], state: Known, t: int
    ) -> dict[str, Value]:
        """Return the decisions in a state that may be in so many nodes, `node` the first."""
        if possible == 0:
            return {}
        if possible > 1 or self._first[node] is None:
            return self._act_by_network(state, t)
        if node not in by_node:
            made = self.choices(node, t)[0]
            whole = len(made) in (0, len(self._together))
            by_node[node] = made if whole else self._act_by_network(state, t)
        return by_node[node]

    def value(self, state: Evidence, t: int = 0) -> float:
        """Return what a state is worth at time t, the best done in it and after it."""
        best = best_among(self.action_values(state, t))
        return best[0].utility if best else math.nan

    def table(self, t: int = 0) -> dict[str, list[Any]]:
        """Return one row for each interface node: its states, the best decisions, their worth.

        `pandas.DataFrame(policy.table())` makes it a data frame.
        """
        from rspmn.infer.policy_table import policy_table

        return policy_table(self, t)

    def choices(self, node: int, t: int = 0) -> tuple[dict[str, Value], float]:
        """Return the best decisions at an interface node, as far as nothing is seen between them.

        Also what they are worth: -∞ if nothing known follows any of them.
        """
        at = self._first[node]
        if at is None:
            return {}, math.nan
        after = self._steps_to_go(t)
        level, k = self._place[at]
        value = float(self._bests(after)[level][0][k])
        made: dict[str, Value] = {}
        while at is not None:
            decision, chosen, at = self._best_branch(at, after)
            if isinstance(chosen, Mark):
                break
            made[decision] = chosen
        return made, value

    def steps_behind(self, node: int, t: int = 0) -> float:
        """Return the logged steps behind the best decisions at an interface node."""
        at = self._first[node]
        return 0.0 if at is None else _counted(self._behind(at, self._steps_to_go(t)))

    # ---- how they are answered -----------------------------------------------------

    def _steps_to_go(self, t: int) -> int:
        """Return how many steps follow the one at time t; 0 for ever."""
        if self.horizon is None:
            return 0
        if not isinstance(t, int | np.integer) or not 0 <= t < self.horizon:
            raise EvidenceError(f"t: expected 0 to {self.horizon - 1}, found {t!r}")
        return self.horizon - 1 - t

    def _worth(self, after: int) -> list[Array]:
        """Return the worth of every branch, by level, with so many steps after this one."""
        found = self._kept.get(after)
        if found is None:
            last = self.horizon is not None and after == 0
            bellman = self._bellman
            values = bellman.unknowns(self._values[after], self.discount, last)
            found = [level.branches(values, last, bellman.has_edge) for level in bellman.levels]
            if len(self._kept) >= KEPT:
                self._kept.clear()
            self._kept[after] = found
        return found

    def _bests(self, after: int) -> list[tuple[Array, list[int]]]:
        """Return the best worth of every max node and the first branch that has it, by level."""
        found = self._kept_bests.get(after)
        if found is None:
            found = [
                _best_of(worth, level.starts[: len(level.nodes)])
                for worth, level in zip(self._worth(after), self._bellman.levels, strict=True)
            ]
            if len(self._kept_bests) >= KEPT:
                self._kept_bests.clear()
            self._kept_bests[after] = found
        return found

    def _best_branch(self, at: int, after: int) -> tuple[str, Value, int | None]:
        """Return the best value of a max node, and the decision that can be made after it."""
        node = self.model.template.nodes[at]
        assert isinstance(node, Max)
        level, k = self._place[at]
        chosen = self._bests(after)[level][1][k]
        return node.decision, node.values[chosen], self._next(node.decision, node.children[chosen])

    def _next(self, decision: str, child: int) -> int | None:
        """Return the decision below a branch, if nothing is seen before it."""
        if decision not in self._together[:-1]:
            return None
        return _first_decision(self.model, child)

    def _certain_node(self, known: Known) -> int | None:
        """Return the interface node of a state if it is certain, else None."""
        if any(name not in self._index.names for name in known):
            return None
        scores = self._index.scores(known)
        best = int(scores.argmax())
        if scores[best] == -math.inf or np.count_nonzero(scores > -math.inf) > 1:
            return None
        return best

    def _by_node(self, node: int, t: int) -> list[ActionValue]:
        """Return the worth of the first decision's values in an interface node."""
        after = self._steps_to_go(t)
        at = self._first[node]
        assert at is not None
        found = self.model.template.nodes[at]
        assert isinstance(found, Max)
        level, k = self._place[at]
        start = int(self._bellman.levels[level].starts[k])
        mine = self._worth(after)[level][start : start + len(found.values)].tolist()
        return [
            ActionValue(found.decision, value, worth, 1.0, _counted(self._behind(child, after)))
            for value, worth, child in zip(found.values, mine, found.children, strict=True)
            if not isinstance(value, Mark)
        ]

    def _behind(self, index: int, after: int) -> float:
        """Return the logged steps behind a node, as `Evaluation.steps` counts them."""
        node = self.model.template.nodes[index]
        match node:
            case Utility():
                return node.count
            case Max():
                _, value, _ = self._best_branch(index, after)
                return self._behind(node.children[node.values.index(value)], after)
            case Product():
                return min((self._behind(c, after) for c in node.children), default=math.inf)
            case Sum():
                return sum(self._behind(c, after) for c in node.children)
            case _:
                return math.inf

    def _by_network(self, known: Known, t: int) -> list[ActionValue]:
        """Ask the network, for evidence that tables cannot take."""
        after = self._steps_to_go(t)
        values = self._values[after]
        future = [
            Evaluation(0.0, self.discount * u if u > -math.inf else u) for u in values.tolist()
        ]
        if self.horizon is not None and after == 0:
            future = [Evaluation(0.0, 0.0)] * len(values)
        asked = next((n for n in self.model.schema.decisions if n not in known), None)
        return actions.expected_utilities(self.model.from_anywhere, known, asked, future)

    def _act_by_network(self, known: Known, t: int) -> dict[str, Value]:
        schema = self.model.schema
        made: dict[str, Value] = {}
        for place, name in enumerate(schema.decisions):
            if name in known:
                continue
            best = best_among(self._by_network(known | made, t))
            if not best:
                return {}
            made[name] = best[0].value
            if schema.information_sets[place + 1]:
                break
        return made

    def _unseen(self, known: Known) -> Any:
        if self.otherwise is not None:
            return self.otherwise
        given = ", ".join(f"{name}={show(value)}" for name, value in known.items())
        raise EvidenceError(
            f"the model knows no decision in the state {given or '(nothing known)'}: action_values "
            "says what it knows; a policy made with otherwise=... answers that in such states"
        )

    def _known(self, state: Evidence) -> Known:
        """Return what is known of a state, quickly where all of it is before the first decision."""
        if not isinstance(state, Mapping):
            raise EvidenceError(
                f"expected values by variable, as in {{'x': 1}}, found {type(state).__name__}"
            )
        names = self._index.names
        if all(name in names for name in state):
            return {
                name: as_value(raw, f"evidence for {name!r}", EvidenceError)
                for name, raw in state.items()
                if not is_missing(raw)
            }
        return known_values(state, self.model.template)

    def _offered(self, known: Known) -> tuple[str, Sequence[Value]]:
        """Return the next decision and all values that it takes anywhere."""
        schema = self.model.schema
        decision = next((name for name in schema.decisions if name not in known), None)
        if decision is None:
            raise EvidenceError("no decision is left to make: the evidence holds them all")
        if decision not in self._domains:
            values: dict[Value, None] = {}
            for node in self.model.template.nodes:
                if isinstance(node, Max) and node.decision == decision:
                    values |= dict.fromkeys(v for v in node.values if not isinstance(v, Mark))
            self._domains[decision] = list(values)
        return decision, self._domains[decision]


def _best_of(worth: Array, starts: Ints) -> tuple[Array, list[int]]:
    """Return the best of each part and the first place in it that is as good."""
    best = np.maximum.reduceat(worth, starts)
    size = np.maximum.reduceat(np.where(np.isfinite(worth), np.abs(worth), 0.0), starts)
    lengths = np.diff(np.append(starts, len(worth)))
    good = worth >= np.repeat(best - TIE * size, lengths)
    place = np.where(good, np.arange(len(worth)), len(worth))
    return best, (np.minimum.reduceat(place, starts) - starts).tolist()


def _first_decision(model: RSPMN, root: int) -> int | None:
    """Return the max node below a root if nothing but factors stand beside it, else None."""
    node = model.template.nodes[root]
    if isinstance(node, Max):
        return root
    kinds = {type(model.template.nodes[child]) for child in node.children}
    if not isinstance(node, Product) or kinds & {Utility, Latent}:
        return None  # what is earned beside the decision is not in its branches
    found = [at for child in node.children if (at := _first_decision(model, child)) is not None]
    return found[0] if len(found) == 1 else None


def _made_together(schema: Schema) -> list[str]:
    """Return the decisions that are made before anything is seen after the first."""
    found = []
    for decision, seen in zip(schema.decisions, schema.information_sets[1:], strict=True):
        found.append(decision)
        if seen:
            break
    return found


def _counted(steps: float) -> float:
    return 0.0 if math.isinf(steps) else steps


def _array(values: list[Any]) -> NDArray[Any]:
    """Return values as an array of their own type, or of objects if they are mixed."""
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and kinds <= {bool, int, float, str}:
        return np.array(values)
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made
