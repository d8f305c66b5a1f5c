"""Linear equations of chains: (I - γP) v = r, for many interface nodes in time linear in edges.

A complete factorisation fills up: of chains without an order to them (random graphs, rings of
machines) it has nearly n² entries. So from some size on the factorisation is incomplete, with at
most a few times the entries of the equations, and GMRES makes up for what it lacks. Of a line or a
grid the incomplete factorisation is the complete one; chains that mix fast need few iterations.
"""

from typing import Any

import numpy as np

from rspmn.types import Array

#: Equations of at most so many unknowns are solved by a complete factorisation.
FEW = 1_000
#: The incomplete factorisation: entries below a share of their column are left out, and there are
#: at most so many times the entries of the equations.
DROPPED, FILLED = 1e-6, 5
#: A solution is accepted if no equation is off by more than this, relative to the largest unknown.
NEAR = 1e-13
#: Iterations between restarts of GMRES, and the most restarts.
BETWEEN, MOST_RESTARTS = 30, 30


def solved(system: Any, right: Array) -> Array:  # [n]
    """Return the solution of sparse equations, [n, n], with right-hand sides [n].

    Raised is a `numpy.linalg.LinAlgError` if they are singular.

    >>> from scipy.sparse import csc_array
    >>> solved(csc_array([[1.0, -0.5], [0.0, 1.0]]), np.array([1.0, 2.0]))
    array([2., 2.])
    """
    from scipy.sparse.linalg import splu

    # A copy: SciPy sorts the entries in place, and a transpose may share its numbers with another
    # matrix but not the places of these.
    system = system.tocsc(copy=True)
    found = _by_iterations(system, right) if len(right) > FEW else None
    if found is not None:
        return found
    try:
        return np.asarray(splu(system).solve(right))
    except RuntimeError as error:
        raise np.linalg.LinAlgError(f"{len(right)} equations: {error}") from error


def _by_iterations(system: Any, right: Array) -> Array | None:  # [n]
    """Return the solution by GMRES, as near as it comes; None if that is not near enough."""
    from scipy.sparse.linalg import LinearOperator, gmres, spilu

    try:
        nearly = spilu(system, drop_tol=DROPPED, fill_factor=FILLED)
    except RuntimeError:  # what is left of the equations is singular
        return None
    inverse = LinearOperator(system.shape, nearly.solve)
    found, least = np.asarray(nearly.solve(right)), np.inf
    for _ in range(MOST_RESTARTS):
        left = right - system @ found
        off = float(np.abs(left).max())
        if not off < least / 2:  # no nearer than before
            break
        best, least = found, off
        found = best + gmres(system, left, rtol=1e-3, M=inverse, restart=BETWEEN, maxiter=1)[0]
    return best if least <= NEAR * float(np.abs(best).max()) else None
