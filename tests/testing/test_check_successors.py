"""The check of weighings accepts ours, and says what is wrong with others."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from conformance import check_successors
from rspmn.learn import Counts, Factored
from rspmn.learn.successors import Successors, SuccessorWeights, Transitions


@pytest.mark.parametrize("successors", [Counts(), Factored()])
def test_ours_conform(successors: Successors) -> None:
    check_successors(successors)


def first_heaviest(transitions: Transitions, found: SuccessorWeights) -> SuccessorWeights:
    """Give the first edge of each site more, by the order of the transitions."""
    weights = found.weights.copy()
    weights[found.starts[:-1]] += 1 + transitions.window[0]
    return replace(found, weights=weights / np.bincount(found.site, weights)[found.site])


def changing(transitions: Transitions, found: SuccessorWeights) -> SuccessorWeights:
    transitions.counts[0] += 1
    return found


BROKEN: dict[str, Callable[[Transitions, SuccessorWeights], SuccessorWeights]] = {
    "must sum to 1": lambda _, w: replace(w, weights=w.weights / 2),
    "must be above 0": lambda _, w: replace(w, weights=-w.weights),
    "must be sorted, each once": lambda _, w: replace(w, interfaces=w.interfaces[::-1].copy()),
    "counts must be those": lambda _, w: replace(w, counts=w.counts + 1),
    "do not exist": lambda _, w: replace(w, interfaces=w.interfaces + 1000),
    "starts must have": lambda _, w: replace(w, starts=w.starts[:-1]),
    "the strength is too small": lambda _, w: replace(
        w, weights=np.repeat(1 / np.diff(w.starts), np.diff(w.starts)),
        strength=np.zeros(len(w.starts) - 1),
    ),
    "in another order": first_heaviest,
    "transitions were changed": changing,
}  # fmt: skip


@pytest.mark.parametrize("message", list(BROKEN))
def test_what_is_broken_is_said(message: str) -> None:
    def broken(transitions: Transitions) -> tuple[SuccessorWeights, None]:
        found, _ = Counts()(transitions)
        return BROKEN[message](transitions, found), None

    with pytest.raises(AssertionError, match=message):
        check_successors(broken)


def test_an_answer_without_info() -> None:
    def alone(transitions: Transitions) -> tuple[SuccessorWeights, None]:
        return Counts()(transitions)[0]  # type: ignore[return-value]

    with pytest.raises(AssertionError, match=r"expected \(weights, info\)"):
        check_successors(alone)
