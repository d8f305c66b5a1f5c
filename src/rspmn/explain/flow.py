"""Masses over pairs (interface node, return so far), passed on by one step."""

from collections.abc import Callable

import numpy as np

from rspmn.explain.outcome_rows import MixtureRows, OutcomeRows
from rspmn.types import Array, Ints

#: Moves masses by what outcomes earn: (masses [n, size], outcomes [n]) to masses.
Move = Callable[[Array, Ints], Array]
#: Says what is done with masses that are at max nodes: (max nodes [n], masses [n, size]) to the
#: branches that are taken, as `Offers` numbers them, and the mass of each.
Decide = Callable[[Ints, Array], tuple[Ints, Array]]


class Flow:
    """One step from interface nodes to those of the next step.

    Where it is not known what follows, mass earns what its outcome earns and then goes on as the
    rest of its branch: the mean is that of `rspmn.infer.evaluation`.

    Parameters
    ----------
    rows
        The template by outcome.
    shares
        How much is known of what follows at each max node. [max nodes]
    last
        Whether nothing follows this step: then it need not be known.
    """

    def __init__(self, rows: OutcomeRows, shares: Array, last: bool) -> None:
        self.rows, self.shares = rows, shares
        self.unknown = np.zeros(len(rows.earned)) if last else rows.unknown
        self.leads = rows.leads.copy()
        if rows.model.unknown is not None and not last:
            self.leads.data[self.leads.indices == rows.model.unknown] = 0.0

    def __call__(self, mass: Array, decide: Decide, move: Move) -> tuple[Array, Array]:
        """Return the masses after the step: of interface nodes, and where nothing follows.

        They are [interfaces, size] and [size].
        """
        self._next, self._over = np.zeros_like(mass), np.zeros(mass.shape[1])
        self._waiting = np.zeros((len(self.shares), mass.shape[1]))
        self._move = move
        here = np.flatnonzero(mass.any(axis=1))
        self._pass(self.rows.roots[here], mass[here])
        for numbers in reversed(self.rows.levels):
            numbers = numbers[self._waiting[numbers].any(axis=1)]
            branches, taken = decide(numbers, self._waiting[numbers])
            self._pass(self.rows.branches[branches], taken)
        return self._next, self._over

    def _pass(self, rows: MixtureRows, mass: Array) -> None:
        """Pass on the mass of mixtures."""
        entries, decisions = rows.outcomes.tocoo(), rows.decisions
        row, outcome = entries.coords
        moved = self._move(entries.data[:, None] * mass[row], outcome)
        self._next += self.leads[outcome].T @ moved
        self._waiting += (decisions * self.shares[None, :]).T @ mass
        parts = rows.outcomes.sum(axis=1) + decisions.sum(axis=1)
        rest = np.where(parts > 1 - 1e-9, 0.0, 1 - parts)
        self._over += rest @ mass
        lost = np.asarray(decisions @ (1 - self.shares))[:, None] * mass
        gone = np.flatnonzero(self.unknown[outcome] > 0)
        np.add.at(lost, row[gone], self.unknown[outcome[gone], None] * moved[gone])
        if lost.any():
            self._go_on(rows, rest, lost)

    def _go_on(self, rows: MixtureRows, rest: Array, lost: Array) -> None:
        """Send mass of which it is not known what follows where the rest of its row goes."""
        decisions = rows.decisions * self.shares[None, :]
        known = rows.outcomes @ (1 - self.unknown) + decisions.sum(axis=1) + rest
        lost = lost / np.maximum(known, 1e-300)[:, None]
        self._next += (rows.outcomes @ self.leads).T @ lost
        self._waiting += decisions.T @ lost
        self._over += rest @ lost
