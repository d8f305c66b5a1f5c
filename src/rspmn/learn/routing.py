"""Step 4, first half: which interface node each step and each successor is in.

With the paper's uniform S_L the most likely interface node of a step depends on that step alone.
Where rows were divided by values, a state that was learned from has one interface node that does
not exclude it: the one it was learned in. Other states are sent to the likeliest.
"""

from dataclasses import dataclass

import numpy as np

from rspmn.circuit import Network
from rspmn.data.states import States
from rspmn.infer.compiled.assign import NOWHERE
from rspmn.infer.compiled.layers import compile_likelihood
from rspmn.infer.compiled.leaf_tables import Distinct
from rspmn.types import Array, Bools, Ints

#: So many numbers are held at once.
CHUNK = 2_000_000


@dataclass(frozen=True, eq=False)
class Routes:
    """The interface node of each state, and of each window's step and successor."""

    states: States
    of_states: Ints  # [count], NOWHERE where all interface nodes exclude it
    doubtful: Bools  # [count], whether several interface nodes do not

    @property
    def of_steps(self) -> Ints:  # [num_windows]
        """The interface node of each window's step."""
        return self.of_states[self.states.of_steps]


def route(
    states: States, learned_in: Ints, network: Network, visits: Array, disjoint: bool
) -> Routes:
    """Send each state to an interface node.

    Parameters
    ----------
    states
        The distinct states.
    learned_in
        The interface node that each window's step was learned in, -1 if none. [num_windows]
    network
        What each interface node says about the state.
    visits
        How much was learned in each interface node: of several that a state with missing values
        may be in, the likelier one is taken.
    disjoint
        Whether each state that was learned from is excluded by all interface nodes but its own.
    """
    of_states = np.full(states.count, NOWHERE)
    doubtful = np.zeros(states.count, dtype=bool)
    if disjoint:
        known = learned_in >= 0
        of_states[states.of_steps[known]] = learned_in[known]
    open_states = np.flatnonzero(of_states == NOWHERE)
    step = max(1, CHUNK // max(1, len(network)))
    likelihood = compile_likelihood(network)
    with np.errstate(divide="ignore"):
        prior = np.log(visits)[:, None]
    for start in range(0, len(open_states), step):
        part = open_states[start : start + step]
        columns = {name: Distinct.of(c.take(part)) for name, c in states.columns.items()}
        scores = likelihood(columns, len(part)) + prior
        best = scores.argmax(axis=0)
        possible = (scores > -np.inf).sum(axis=0)
        of_states[part] = np.where(possible > 0, best, NOWHERE)
        doubtful[part] = possible > 1
    return Routes(states, of_states, doubtful)
