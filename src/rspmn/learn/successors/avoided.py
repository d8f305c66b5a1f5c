"""Avoided decisions: those that were never made where the logger was expected to make them.

For each decision a tree divides the states by what the logger did in them, with the score that all
trees have. That a decision was never made in a state may be chance or intent. It was *avoided* if
it was never made in this very state, or in the whole context that the tree puts it in, although
several tries were to be expected there by how often it was made elsewhere: a law, a danger or a
habit, the log cannot say which. Else chance left it out, if what it does elsewhere says anything of
this state: each two values of the state were seen together with the decision. Who drops a passenger
off at the destination alone says nothing of other places, however rarely they were logged.
"""

from dataclasses import dataclass

import numpy as np

from rspmn.context_trees import Contexts, Tied
from rspmn.data.distinct import distinct_rows, find_sorted
from rspmn.data.keys import group_weights
from rspmn.learn.successors.seen_together import SeenTogether
from rspmn.learn.successors.transitions import Transitions, contexts_of
from rspmn.learn.successors.trees import learn_tied
from rspmn.types import Array, Bools, Ints

#: A decision was avoided in a context without a try if at least so many were to be expected.
LEAST_EXPECTED = 3.0
#: The weight of decisions that were made with each value of a state, but not with each two.
APART = 1e-9


class AvoidedDecisions:
    """Tells what the logger avoided, by a tree of each decision given the state and earlier ones.

    Parameters
    ----------
    transitions
        What was logged.
    window
        The windows to learn from.
    counts
        How often each of them occurred.
    """

    def __init__(self, transitions: Transitions, window: Ints, counts: Array) -> None:
        names = tuple(transitions.schema.information_sets[0])
        self.decisions: list[_Decision] = []
        for decision in transitions.schema.decisions:
            contexts, context = contexts_of(transitions, names, window)
            made, size = transitions.codes_of(decision, window)
            tree = learn_tied(contexts, context, [made], counts)
            seen = SeenTogether(*_joined(contexts.codes[context], contexts.sizes, made, size))
            steps = group_weights(context, counts)
            taken = np.unique(context * size + made)
            self.decisions.append(_Decision(names, decision, contexts, steps, taken, tree, seen))
            names = (*names, decision)

    def __call__(self, asked: Contexts) -> Bools:  # [contexts]
        """Return which decisions, never made in their state, the logger avoided.

        Contexts are of the state and all decisions.
        """
        found = np.zeros(len(asked), dtype=bool)
        for decision in self.decisions:
            found |= decision.avoided(asked)
        return found

    def chances(self, asked: Contexts) -> Array:  # [contexts]
        """Return how often the logger makes decisions in states, by the contexts of the trees."""
        found = np.ones(len(asked))
        for decision in self.decisions:
            found *= decision.chances(asked)
        return found


@dataclass(frozen=True, eq=False)
class _Decision:
    """What is known of one decision."""

    names: tuple[str, ...]  # the state and earlier decisions
    name: str
    contexts: Contexts  # those that were logged
    steps: Array  # [contexts]
    taken: Ints  # context · values + value of each decision that was made, sorted
    tree: Tied
    seen: SeenTogether

    def chances(self, asked: Contexts) -> Array:  # [contexts]
        """Return how often it is made; hardly ever if not with each two values of the state.

        And never if not with each value.
        """
        made, leaf = asked.codes[:, asked.names.index(self.name)], self._leaves(asked)
        states, size = asked.only(self.names), int(asked.sizes[asked.names.index(self.name)])
        joined = _joined(states.codes, states.sizes, made, size)[0]
        seen = np.where(self.seen(joined), 1.0, np.where(self.seen.alone(joined), APART, 0.0))
        made_there = np.asarray(self.tree.counts[leaf, made]).ravel()
        return np.asarray(seen * made_there / self.tree.totals[leaf])

    def _leaves(self, asked: Contexts) -> Ints:  # [contexts]
        return self.tree.trees.find(asked.only(self.names), 0)

    def avoided(self, asked: Contexts) -> Bools:  # [contexts]
        """Return where it was not made although it was to be expected, or not compared."""
        at, tree = asked.names.index(self.name), self.tree
        made, states = asked.codes[:, at], asked.only(self.names)
        often = (np.asarray(tree.counts[[0]].todense()).ravel() / tree.totals[0])[made]
        leaf = self._leaves(asked)
        tries = np.asarray(tree.counts[leaf, made]).ravel()
        known, size = len(self.steps), int(asked.sizes[at])
        rows, which = distinct_rows(np.concatenate([self.contexts.codes, states.codes]))
        place = np.full(len(rows), known)
        place[which[:known]] = np.arange(known)
        here = place[which[known:]]  # the context of just this state
        is_taken = find_sorted(self.taken, here * size + made) >= 0
        steps = np.append(self.steps, 0.0)[here]
        steps = np.where(tries > 0, steps, np.maximum(steps, tree.totals[leaf]))
        values, _ = _joined(states.codes, states.sizes, made, size)
        return np.asarray(~is_taken & ((steps * often >= LEAST_EXPECTED) | ~self.seen(values)))


def _joined(states: Ints, sizes: Ints, made: Ints, values: int) -> tuple[Ints, list[int]]:
    """Return each variable of states joined with a decision, at least two, and their sizes."""
    joined = states * values + made[:, None]
    if len(sizes) == 1:
        joined, sizes = np.hstack([joined, joined]), np.append(sizes, sizes)
    return joined, (sizes * values).tolist()
