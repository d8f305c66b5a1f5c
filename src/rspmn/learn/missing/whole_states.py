"""Draws of whole states, from their posterior given all that is known of a step.

    P(x | step) ∝ P(x) · P(d | x) · P(u | x, d) · Π_c P(x'_c | x, d)

over the states x that agree with what is known, where c are the variables known of the successor.
What is missing of that is then drawn given x and d. P(x) counts the states as they were drawn last;
all other factors are trees. States and trees depend on each other, so this is repeated: stochastic
expectation maximisation. Variables that are drawn one at a time could not move from one state to
another where transitions are certain.
"""

import time
from dataclasses import dataclass, replace

import numpy as np

from rspmn.context_trees import Contexts
from rspmn.data.keys import group_weights
from rspmn.infer.compiled.groups import drawn_columns
from rspmn.learn.missing.lacking_steps import CodedSteps, distinct_rows
from rspmn.learn.successors.trees import learn_tied
from rspmn.memory import KEPT
from rspmn.types import Array, Bools, Ints

#: How often all states are drawn anew.
ROUNDS = 5
#: Trees are learned from states that were drawn: nothing is less likely than this in them.
LEAST = 1e-6
#: At most so many pairs of a step and a state are looked at in a round, and at once. If there are
#: more, or tables of them are too large, they are looked at with the most frequent states.
MOST_PAIRS, CHUNK = 200_000_000, 2_000_000


def drawn_as_states(steps: CodedSteps, rng: np.random.Generator, deadline: float) -> CodedSteps:
    """Return the steps with what is missing drawn anew, several times."""
    for _ in range(ROUNDS):
        factors = None if time.monotonic() >= deadline else _Factors.learn(steps, deadline)
        if factors is None or time.monotonic() >= deadline:  # trees may not be grown to the end
            break
        steps = _with_successors(_with_states(steps, factors, rng), factors, rng)
    return steps


@dataclass(frozen=True, eq=False)
class _Factors:
    """The factors of the posterior, as logarithms of tables."""

    states: Ints  # [states, variables], those that are drawn from
    prior: Array  # [2, states], at other steps and at the first of an episode
    made: Array  # [made, states]
    outcome: Array  # [made, outcomes, states]
    next: list[Array]  # of each variable, [made, values, states]
    agree: list[Array]  # of each variable, [values, states]: 0 or -∞; a missing value agrees

    @classmethod
    def learn(cls, steps: CodedSteps, deadline: float) -> "_Factors":
        """Learn the trees from steps as they were drawn."""
        states, first = _frequent_states(steps)
        with np.errstate(divide="ignore"):
            prior = np.log(np.maximum(first, LEAST) / len(steps.weight))
        contexts, which = steps.contexts()
        pairs = np.column_stack(
            [
                np.tile(states, (steps.num_made, 1)),
                np.repeat(np.arange(steps.num_made), len(states)),
            ]
        )
        asked = steps.contexts_of(pairs)

        def table(codes: Ints, known: Bools, size: int) -> Array:  # [made, values, states]
            if not known.any():
                return np.zeros((steps.num_made, size, len(states)))
            seen = which[known], [codes[known]], steps.weight[known]
            tree = learn_tied(contexts, *seen, deadline=deadline)
            found = np.full((len(pairs), size), LEAST)
            chances = tree.distribution(asked).toarray()
            found[:, : chances.shape[1]] = np.maximum(chances, LEAST)
            found = np.log(found).reshape(steps.num_made, len(states), size)
            return np.ascontiguousarray(found.transpose(0, 2, 1))

        after = []
        for k, size in enumerate(steps.sizes.tolist()):
            known = (steps.next[:, k] > 0) & ~steps.next_lacking[:, k]
            after.append(table(steps.next[:, k], known, size))
            after[-1][:, 0] = 0.0  # nothing is known
        outcome = table(steps.outcome, np.ones(len(which), bool), steps.num_outcomes)
        agree = [_agreeing(states[:, k], size) for k, size in enumerate(steps.sizes.tolist())]
        made = _chances_of_made(steps, states, deadline)
        return cls(states, prior, made, outcome, after, agree)

    @property
    def at_once(self) -> int:
        """How many steps are looked at at once."""
        return max(1, CHUNK // len(self.states))


def _frequent_states(steps: CodedSteps) -> tuple[Ints, Array]:  # [states, variables], [2, states]
    """Return the states, and how often each is one of those within and at the start of episodes."""
    followed = (steps.next > 0).all(axis=1)
    both = np.concatenate([steps.state, steps.next[followed]])
    first, which = distinct_rows(both)
    states = both[first]
    weight = np.concatenate([steps.weight, steps.weight[followed]])
    of_state = steps.num_made * (int(steps.sizes.sum()) + steps.num_outcomes)  # in tables
    most = max(1, min(MOST_PAIRS // len(steps.weight), KEPT // of_state))
    common = np.sort(np.argsort(-group_weights(which, weight), kind="stable")[:most])
    here = which[: len(steps.state)]
    seen = group_weights(steps.first * len(states) + here, steps.weight, 2 * len(states))
    return states[common], seen.reshape(2, -1)[:, common]


def _chances_of_made(steps: CodedSteps, states: Ints, deadline: float) -> Array:  # [made, states]
    """Return how likely decisions are in each state: whoever decided saw more than the log has."""
    first, which = distinct_rows(steps.state)
    contexts = Contexts(steps.names, steps.sizes, steps.state[first])
    tree = learn_tied(contexts, which, [steps.made], steps.weight, deadline=deadline)
    asked = Contexts(steps.names, steps.sizes, states)
    return np.ascontiguousarray(np.log(np.maximum(tree.distribution(asked).toarray(), LEAST)).T)


def _agreeing(values: Ints, size: int) -> Array:  # [values, states]
    found = np.where(values == np.arange(size)[:, None], 0.0, -np.inf)
    found[0] = 0.0
    return found


def _with_states(steps: CodedSteps, factors: _Factors, rng: np.random.Generator) -> CodedSteps:
    """Return the steps with their states drawn anew, given what is known of the successors."""
    state = steps.state.copy()
    rows = np.flatnonzero(steps.lacking.any(axis=1))
    known = np.where(steps.lacking, 0, steps.state)
    then = np.where(steps.next_lacking, 0, steps.next)
    for part in _parts(rows, factors.at_once):
        made = steps.made[part]
        log = factors.prior[steps.first[part].astype(np.int64)] + factors.made[made]
        log += factors.outcome[made, steps.outcome[part]]
        for k, (agree, after) in enumerate(zip(factors.agree, factors.next, strict=True)):
            log += agree[known[part, k]]
            log += after[made, then[part, k]]
        _draw(state, part, log, factors.states, rng)
    return replace(steps, state=state)


def _with_successors(steps: CodedSteps, factors: _Factors, rng: np.random.Generator) -> CodedSteps:
    """Return the steps with their successors drawn anew, given their states."""
    after = steps.next.copy()
    rows = np.flatnonzero(steps.next_lacking.any(axis=1))
    known = np.where(steps.next_lacking, 0, steps.next)
    place = _places(factors.states, steps.state)
    rows = rows[place[rows] >= 0]
    for part in _parts(rows, factors.at_once):
        here, made = place[part][:, None], steps.made[part][:, None]
        log = np.zeros((len(part), len(factors.states)))
        for k, (agree, chances) in enumerate(zip(factors.agree, factors.next, strict=True)):
            log += agree[known[part, k]]
            log += chances[made, factors.states[:, k], here]
        _draw(after, part, log, factors.states, rng)
    return replace(steps, next=after)


def _draw(into: Ints, rows: Ints, log: Array, states: Ints, rng: np.random.Generator) -> None:
    """Draw a state for each row; one that agrees with none keeps what it has."""
    most = log.max(axis=1)
    possible = np.flatnonzero(most > -np.inf)
    weights = np.exp(log[possible] - most[possible, None])
    into[rows[possible]] = states[drawn_columns(weights, rng)]


def _parts(rows: Ints, size: int) -> list[Ints]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _places(states: Ints, asked: Ints) -> Ints:  # [asked]
    """Return the place of each state among some distinct ones, -1 if it is none of them."""
    first, which = distinct_rows(np.concatenate([states, asked]))
    return np.where(first < len(states), first, -1)[which[len(states) :]]
