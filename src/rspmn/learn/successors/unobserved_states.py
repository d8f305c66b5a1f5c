"""States beyond the log: those that factors say may follow, although the log never had them.

Part of what follows a step may be in no interface node. To leave that part out would make it free
to leave what is known: of many decisions, those would be chosen of which the bad outcomes were not
seen, and who gets there would not know what to do. So states are added that known states lead to,
by factors, with any decision that the log has; and states that these lead to in turn, the ones that
are expected most often first, until there are no more or too many. A state that an interface node
of several others has is in that.

Factors are independent, so that they may put a robot in two places. States are added only if each
two components of them have values that some state of the log has together.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rspmn.circuit import Leaf, Network
from rspmn.context_trees import Contexts
from rspmn.data.distinct import distinct_rows
from rspmn.data.episodes import Followed
from rspmn.data.keys import group_weights
from rspmn.data.windows import States, distinct_states
from rspmn.infer.compiled.assign import Located, locate, with_those_that_went_on
from rspmn.learn.successors.factored import Learned, Ties
from rspmn.learn.successors.likely_states import CUT, LikelyStates
from rspmn.learn.successors.predict import Predicted, Predictor, UnseenContexts
from rspmn.learn.successors.seen_together import SeenTogether
from rspmn.learn.successors.transitions import Transitions, contexts_of
from rspmn.model import RSPMN
from rspmn.types import Array, Bools, Ints

if TYPE_CHECKING:
    from rspmn.learn.two_step import TwoSteps

#: At most this many states are added, or so many for each state of the log, if that is more; and
#: about so many pairs of a state and decisions are looked at.
MOST_STATES, FOR_EACH, MOST_PAIRS = 8_000, 3, 1_200_000
#: So many contexts are looked at at once.
CHUNK = 500_000


@dataclass(frozen=True, eq=False)
class Beyond:
    """States that the log does not have, and what decisions would do in them and in all others."""

    codes: dict[str, Ints]  # [states], of each variable, as `Transitions.state_codes`
    made: Contexts  # [decisions], all that the log has
    #: Of all states, those of the log first. Pair s · decisions + d is decisions d in state s.
    predicted: Predicted
    tried: Bools  # [states of the log, decisions], which the log has
    complete: bool  # whether no more states follow, but for next to nothing
    cut: float  # the share of what follows that was not looked at: the least probable states
    ties: Ties  # what it was found by

    def __len__(self) -> int:
        return len(next(iter(self.codes.values())))


def beyond_the_log(
    two: "TwoSteps", located: Located, interfaces: int, end: int | None
) -> Beyond | None:
    """Return the states that may follow those of the log; none if they are too many to look at.

    Parameters
    ----------
    two
        The log.
    located
        Its states, in interface nodes.
    interfaces, end
        The number of interface nodes, and which of them is END.
    """
    found = _closure(two, located, interfaces, end)
    return None if found is None else found.beyond()


def beyond_in_model(model: RSPMN, two: "TwoSteps") -> tuple[Located, Beyond] | None:
    """Return the states of a log and those that only a model has, and what is done in these.

    None if a state has no interface node, or there are too many to look at.
    """
    located = locate(model, distinct_states(two.windows))
    if (located.node < 0).any():
        return None
    closure = _closure(two, located, model.num_interfaces, model.end)
    if closure is None:
        return None
    more = np.setdiff1d(np.array(model.beyond, dtype=np.int64), located.node)
    codes = _codes_in(model.template, more, located.states)
    more, codes = more[(codes >= 0).all(axis=1)], codes[(codes >= 0).all(axis=1)]
    beyond = closure.given(codes + 1)
    return with_states(located, beyond, more), beyond


def with_states(located: Located, beyond: Beyond, nodes: Ints) -> Located:
    """Add states that the log does not have, given the interface node of each.

    Each of their values is that of some state of the log.
    """
    states, columns = located.states, {}
    for name, codes in beyond.codes.items():
        column = states.columns[name]
        new = (codes - 1).astype(column.data.dtype)
        columns[name] = replace(column, data=np.append(column.data, new))
    more = replace(states, columns=columns, count=states.count + len(beyond))
    return Located(more, np.append(located.node, nodes))


def _codes_in(template: Network, interfaces: Ints, states: States) -> Ints:  # [nodes, variables]
    """Return the codes of the values that states of interface nodes have; -1 if one is new."""
    names = list(states.columns)
    known = [{v: k for k, v in enumerate(states.columns[name].domain)} for name in names]
    found = np.full((len(interfaces), len(names)), -1)
    for row, number in enumerate(interfaces.tolist()):
        for child in template.nodes[template.roots[number]].children:
            leaf = template.nodes[child]
            if isinstance(leaf, Leaf) and len(values := leaf.distribution.support()) == 1:
                at = names.index(leaf.variable)
                found[row, at] = known[at].get(values[0], -1)
    return found


def _closure(
    two: "TwoSteps", located: Located, interfaces: int, end: int | None
) -> "_Closure | None":
    """Return what says which states follow others.

    None if the log only has last steps, or more states and decisions than are looked at.
    """
    windows, states, node = two.windows, located.states, located.node
    here, after = located.of_steps(), located.of_successors(windows, end)
    steps = with_those_that_went_on(windows, windows.counts.astype(np.float64), here, after, end)
    window = np.flatnonzero((windows.followed != Followed.UNKNOWN) & ~windows.went_on)
    counts = steps[window]
    boxes = np.zeros(interfaces, dtype=bool)
    boxes[node[states.of_steps[window]]] = True
    transitions = Transitions(
        two.schema, two.table, states, node, boxes, end, 1, np.zeros_like(window), window,
        after[window], counts, np.ones(len(window)),
    )  # fmt: skip
    goes_on = ~transitions.over
    made, _ = contexts_of(transitions, two.schema.decisions, window)
    if not goes_on.any() or states.count * len(made) > MOST_PAIRS:
        return None
    return _Closure(transitions, Learned(transitions, goes_on))


class _Closure:
    """States and what follows them, generation by generation."""

    def __init__(self, transitions: Transitions, learned: Learned) -> None:
        schema, window = transitions.schema, transitions.window
        self.factors, self.ties = learned.factors, learned.ties
        factors = self.factors
        self.predict = Predictor(transitions, factors)
        self.names = schema.information_sets[0]
        self.made, decision = contexts_of(transitions, schema.decisions, window)
        taken = group_weights(decision, transitions.counts, len(self.made))
        self.share = taken / taken.sum()
        states = transitions.states
        codes = [transitions.state_codes[name] for name in self.names]
        self.codes = np.stack(codes, axis=1)  # [states, variables]
        self.sizes = self.codes.max(axis=0) + 1
        self.values = np.stack([part.values for part in factors.components], axis=1)
        self.known = states.count
        self.visits = group_weights(states.of_steps[window], transitions.counts, states.count)
        self.tried = np.zeros((states.count, len(self.made)), dtype=bool)
        self.tried[states.of_steps[window], decision] = True
        self.likely = LikelyStates.of(factors)
        self.seen = SeenTogether(self.values, [part.size for part in factors.components])
        self.found: list[Predicted] = []
        self.listed = self.following = 0.0  # how often states follow that were looked at, and all

    def beyond(self) -> Beyond:
        """Return all states that follow, and what follows them."""
        size, first, complete = len(self.made), 0, False
        while first < len(self.codes):
            stop = len(self.codes)
            values, visits = self._followed(first, stop)
            plausible = self.seen(values) & ~self.factors.boxes.have(values)
            values, visits = values[plausible], visits[plausible]
            most = self.known + max(MOST_STATES, FOR_EACH * self.known)
            left = max(0, min(MOST_PAIRS // size, most) - stop)
            complete = len(values) <= left
            order = np.sort(np.argsort(-visits, kind="stable")[:left])
            self.values = np.concatenate([self.values, values[order]])
            self.codes = np.concatenate([self.codes, self._codes_of(values[order])])
            self.visits = np.concatenate([self.visits, visits[order]])
            first = stop
        codes = dict(zip(self.names, self.codes[self.known :].T, strict=True))
        cut = max(0.0, 1 - self.listed / self.following) if self.following > 0 else 0.0
        complete &= cut <= 10 * CUT  # which was aimed at with a sample
        return Beyond(codes, self.made, _joined(self.found), self.tried, complete, cut, self.ties)

    def given(self, codes: Ints) -> Beyond:
        """Return what follows some states, and no others; `codes` are [states, variables]."""
        size = len(self.made)
        self.codes = np.concatenate([self.codes, codes])
        step = max(1, CHUNK // (20 * size))
        for start in range(0, len(self.codes), step):
            self.found.append(self._predicted(np.arange(start, min(len(self.codes), start + step))))
        columns = dict(zip(self.names, codes.T, strict=True))
        return Beyond(columns, self.made, _joined(self.found), self.tried, True, 0.0, self.ties)

    def _followed(self, first: int, stop: int) -> tuple[Ints, Array]:
        """Return the values of states that follow some states and are new, and how often."""
        size, leaves, weights = len(self.made), [], []
        for start in range(first, stop, step := max(1, CHUNK // (20 * size))):
            here = np.arange(start, min(stop, start + step))
            found = self._predicted(here)
            self.found.append(found)
            state, decision = here[found.pair // size], found.pair % size
            weights.append(self.visits[state] * self.share[decision] * found.going)
            leaves.append(found.leaves)
        weight = np.concatenate(weights)
        values, often = self.likely(np.concatenate(leaves, axis=1), weight)
        self.listed, self.following = self.listed + often.sum(), self.following + weight.sum()
        _, which = distinct_rows(np.concatenate([self.values, values]))
        new = ~np.isin(which[len(self.values) :], which[: len(self.values)])
        return values[new], often[new]

    def _predicted(self, states: Ints) -> Predicted:
        """Return what all decisions would do in some states."""
        size = len(self.made)
        pair = np.arange(len(states) * size)
        codes = np.hstack([self.codes[states[pair // size]], self.made.codes[pair % size]])
        sizes = np.concatenate([self.sizes, self.made.sizes])
        contexts = Contexts((*self.names, *self.made.names), sizes, codes)
        return self.predict(UnseenContexts(contexts, pair, np.ones(len(pair))), len(pair))

    def _codes_of(self, values: Ints) -> Ints:  # [states, variables]
        """Return the codes of the variables of states, given the values of components."""
        found = np.zeros((len(values), len(self.names)), dtype=np.int64)
        for k, part in enumerate(self.factors.components):
            member = np.zeros(part.size, dtype=np.int64)
            member[self.values[: self.known, k]] = np.arange(self.known)
            at = [self.names.index(name) for name in part.names]
            found[:, at] = self.codes[member[values[:, k]]][:, at]
        return found


def _joined(found: list[Predicted]) -> Predicted:
    """Return what comes of several lists of pairs, one after the other."""
    before = np.cumsum([0, *(len(part.earned) for part in found)])
    return Predicted(
        np.concatenate([part.earned for part in found]),
        np.concatenate([part.ended for part in found]),
        np.concatenate([part.pair + n for part, n in zip(found, before, strict=False)]),
        np.concatenate([part.going for part in found]),
        np.concatenate([part.leaves for part in found], axis=1),
        np.concatenate([part.alien for part in found]),
    )
