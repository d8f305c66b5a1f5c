"""Components: sets of next-step variables that depend on each other, given all that was before.

The variables of a component have a joint distribution; components are independent.
"""

from itertools import combinations

import numpy as np

from rspmn.context_trees import Contexts, Tied
from rspmn.learn.structure.independence import PairStatistics, components, stratum_statistics
from rspmn.learn.successors.moves import learn_factors
from rspmn.learn.successors.transitions import Component, Transitions
from rspmn.types import Array, Bools, Ints

#: The probability of joining any two variables that are independent. With many contexts that are
#: rarely seen the statistics spread more than they should, and it happens a few times as often.
ALPHA = 0.001


def find_components(
    transitions: Transitions, contexts: Contexts, context: Ints, after: Ints, weights: Array
) -> tuple[list[tuple[str, ...]], Tied]:
    """Return the variables of each component of the state, and their trees of contexts.

    Arguments are, of each transition, its context, the state that it leads to and how often it
    occurred. Two variables are tested within each pair of leaves of their trees: there, the
    distribution of each is the same in all contexts.
    """
    codes = transitions.state_codes

    def trees_of(names: list[tuple[str, ...]]) -> tuple[list[Ints], Tied]:
        parts = [Component.of(transitions, part) for part in names]
        values = [part.values[after] for part in parts]
        return values, learn_factors(transitions, contexts, context, parts, values, weights)

    varying = [name for name, code in codes.items() if np.ptp(code[after]) > 0]
    constant = tuple(name for name in codes if name not in varying)  # together
    before = [constant] if constant else []
    single = [*before, *((name,) for name in varying)]
    values, tied = trees_of(single)
    dependent = _dependent(tied, contexts, context, values, weights)[len(before) :, len(before) :]
    found = [*before, *components(varying, dependent)]
    return (found, tied) if found == single else (found, trees_of(found)[1])


def _dependent(
    tied: Tied, contexts: Contexts, context: Ints, values: list[Ints], weights: Array
) -> Bools:  # [variables, variables]
    """Test all pairs: G and X², each summed over the pairs of leaves of both trees.

    Only leaves with several values say anything.
    """
    leaves = [tied.trees.find(contexts, k)[context] for k in range(len(values))]
    several = np.diff(tied.counts.indptr) > 1  # [nodes]
    mixed = [several[leaf] for leaf in leaves]
    tested = [k for k, rows in enumerate(mixed) if rows.any()]
    dependent = np.zeros((len(values), len(values)), dtype=bool)
    size = sum(int(np.ptp(value)) > 0 for value in values)
    level = ALPHA / max(1, size * (size - 1) / 2)
    for one, other in combinations(tested, 2):
        rows = np.flatnonzero(mixed[one] & mixed[other])
        a, b = leaves[one][rows], leaves[other][rows]
        together = np.unique(a * len(several) + b, return_inverse=True)[1]
        found = stratum_statistics(together, values[one][rows], values[other][rows], weights[rows])
        g, x2, freedom = (np.array([[part.sum()]]) for part in found[:3])
        summed = PairStatistics(g, x2, freedom, np.array([[weights.sum()]]))
        dependent[one, other] = summed.p_values()[0, 0] < level
    return dependent
