"""Components: sets of next-step variables that depend on each other, given all that was before.

The variables of a component have a joint distribution; components are independent.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rspmn.data.keys import joint_key
from rspmn.learn.structure.independence import PairStatistics, components, stratum_statistics
from rspmn.learn.successors.transitions import Contexts, Transitions
from rspmn.learn.successors.trees import Tied
from rspmn.types import Array, Bools, Ints

#: The probability of joining any two variables that are independent. With many contexts that are
#: rarely seen the statistics spread more than they should, and it happens a few times as often.
ALPHA = 0.001


@dataclass(frozen=True, eq=False)
class Component:
    """Variables with a joint distribution, and the joint value that they have in each state."""

    names: tuple[str, ...]
    values: Ints  # [num_states], numbered from 0
    size: int

    @classmethod
    def of(cls, transitions: Transitions, names: tuple[str, ...]) -> "Component":
        """Return the component of some variables."""
        codes = transitions.state_codes
        key = joint_key([(codes[name], int(codes[name].max()) + 1) for name in names])
        distinct, which = np.unique(key, return_inverse=True)
        return cls(names, which.astype(np.int64), len(distinct))


def find_components(
    transitions: Transitions, contexts: Contexts, context: Ints, after: Ints, weights: Array
) -> list[tuple[str, ...]]:
    """Return the variables of each component of the state.

    Arguments are, of each transition, its context, the state that it leads to and how often it
    occurred. Two variables are tested within each pair of leaves of their trees: there, the
    distribution of each is the same in all contexts.
    """
    codes = transitions.state_codes
    varying = [name for name, code in codes.items() if np.ptp(code[after]) > 0]
    groups = [tuple(name for name in codes if name not in varying)]  # with one value, together
    if len(varying) > 1:
        values = [codes[name][after] for name in varying]
        utility = transitions.schema.utility
        first = utility if utility in contexts.names else None
        tied = Tied.learn(contexts, context, values, weights, first, if_relevant=True)
        leaves = [tied.trees.find(contexts, k)[context] for k in range(len(varying))]
        groups += components(varying, _dependent(values, leaves, weights))
    else:
        groups.append(tuple(varying))
    return [tuple(names) for names in groups if names]


def _dependent(
    values: list[Ints], leaves: list[Ints], weights: Array
) -> Bools:  # [variables, variables]
    """Test all pairs: G and X², each summed over the pairs of leaves of both trees."""
    size = len(values)
    dependent = np.zeros((size, size), dtype=bool)
    level = ALPHA / (size * (size - 1) / 2)
    for one, other in combinations(range(size), 2):
        together = np.unique(leaves[one] * (int(leaves[other].max()) + 1) + leaves[other],
                             return_inverse=True)[1]  # fmt: skip
        found = stratum_statistics(together, values[one], values[other], weights)
        summed = PairStatistics(*(np.array([[part.sum()]]) for part in found))
        dependent[one, other] = summed.p_values()[0, 0] < level
    return dependent
