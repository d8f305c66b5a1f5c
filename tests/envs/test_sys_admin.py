"""The ring of machines, by hand."""

import numpy as np
import pytest

from rspmn.envs.sys_admin import sys_admin


def test_size() -> None:
    ring = sys_admin()
    assert (len(ring.states), len(ring.actions), ring.horizon) == (256, 9, 20)


def test_two_machines_by_hand() -> None:
    """Each is the other's neighbour. From (up, down): m0 stays up by .7, m1 comes up by .1.

    Rebooting m1: m0 stays up by .7, m1 is up; the step earns 1 - .75.
    """
    ring = sys_admin(2)
    at = ring.states.index((True, False))
    for action, expected, reward in (
        ("none", {(False, False): 0.27, (False, True): 0.03, (True, False): 0.63,
                  (True, True): 0.07}, 1.0),
        ("m1", {(False, True): 0.3, (True, True): 0.7}, 0.25),
    ):  # fmt: skip
        row = at * 3 + ring.actions.index((action,))
        part = slice(int(ring.indptr[row]), int(ring.indptr[row + 1]))
        after = [ring.states[k] for k in ring.successors[part].tolist()]
        found = dict(zip(after, ring.probabilities[part].tolist(), strict=True))
        assert found == pytest.approx(expected)
        assert ring.rewards[part] == pytest.approx(np.full(len(expected), reward))


def test_two_steps_by_hand() -> None:
    """From both up, nothing to reboot: 2, then 2 · .95 expected."""
    assert sys_admin(2).optimum(2) == pytest.approx(2 + 2 * 0.95)
