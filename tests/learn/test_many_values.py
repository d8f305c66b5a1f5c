"""Variables of many values: which are compared at all."""

from resource import RUSAGE_SELF, getrusage

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rspmn import Episodes, Schema, Windows
from rspmn.learn import LearnConfig, learn_rspmn
from rspmn.learn.structure import many_values, split
from rspmn.learn.structure.many_values import group_many_values
from rspmn.learn.structure.rows import Rows
from rspmn.learn.structure.targets import Targets
from rspmn.learn.structure.value_groups import OutcomeTable
from rspmn.types import Array, Ints

#: Values of the only variable: twice as many as there are kinds of states.
VALUES = 160


def paired_states(visits: int, seed: int) -> Windows:
    """Return walks among states of which 2k and 2k + 1 behave alike; one in ten moves is lost."""
    rng = np.random.default_rng(seed)
    after = rng.permutation(VALUES).reshape(-1, 2)  # [kinds, actions]
    episodes = visits * VALUES // 10
    x = rng.integers(0, VALUES, episodes)
    steps = []
    for t in range(10):
        a = rng.integers(0, 2, episodes)
        steps.append((np.arange(episodes), np.full(episodes, t), x, a, (x // 2 == 0) * 1.0))
        x = np.where(
            rng.random(episodes) < 0.1, rng.integers(0, VALUES, episodes), after[x // 2, a]
        )
    table = {n: np.concatenate(c) for n, c in zip("etxau", zip(*steps, strict=True), strict=True)}
    schema = Schema([["x"], ["a"]], ["a"], "u", kinds={"x": "categorical"})
    return Windows.from_episodes(
        Episodes.from_long(table, schema, episode="e", time="t", ending="cut")
    )


class Watched:
    """Keeps the groups that were found, and how many groups values were compared with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.groups: list[Ints] = []
        self.compared = 0
        most_alike = many_values._Groups._most_alike

        def compare(
            groups: many_values._Groups,
            cell: Ints,
            weight: Array,
            near: list[int],
        ) -> int:
            self.compared += len(near)
            return most_alike(groups, cell, weight, near)

        def group(rows: Rows, name: str, targets: Targets, alpha: float) -> Ints:
            self.groups.append(group_many_values(rows, name, targets, alpha))
            return self.groups[-1]

        monkeypatch.setattr(many_values._Groups, "_most_alike", compare)
        monkeypatch.setattr(split, "group_many_values", group)


@given(st.integers(0, 2**32 - 1))
def test_a_value_is_compared_with_groups_as_tables_compare_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    block = np.repeat(np.arange(4), [3, 5, 2, 4])
    owner = np.array([0, 0, 1, 1])[block]
    shape = 7, len(block)
    counts = np.where(rng.random(shape) < 0.6, rng.integers(0, 12, shape), 0).astype(np.float64)
    row, cell = np.nonzero(counts)
    starts = np.searchsorted(row, np.arange(len(counts) + 1))
    cells = many_values._Cells(starts, cell, counts[row, cell], block, owner)
    groups = many_values._Groups(cells, owner == 0, 1e-3, 5.0, [])
    parts = [(cell[row == k], counts[k][counts[k] > 0]) for k in range(len(counts))]
    groups.cells = parts[1:]
    groups.in_blocks = [groups._in_blocks(*part) for part in parts[1:]]
    table = OutcomeTable(counts, block, owner, 1e-3, enough=5.0)
    expected = table.p_values(counts[0], counts[1:])
    expected[~table.observed_enough(counts[0], counts[1:])] = 0.0
    found = groups._most_alike(*parts[0], list(range(len(counts) - 1)))
    assert found == (int(expected.argmax()) if expected.max() > 0 else -1)
    near = list(range(len(counts) - 1))
    two = groups._compared(
        *parts[0], groups._in_blocks(*parts[0]), near, np.array(groups.in_blocks)
    )
    dense = table._same_outcomes(counts[0], counts[1:])
    assert table.p_values_of(two) == pytest.approx(dense, rel=1e-6)


def test_states_that_behave_alike_are_one_group(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    learn_rspmn(paired_states(visits=400, seed=0))
    (groups,) = watched.groups
    assert (groups[0::2] == groups[1::2]).mean() > 0.9
    assert groups.max() + 1 < 0.6 * VALUES


def test_rare_values_are_compared_with_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each value is seen about five times after a decision, and ten are wanted."""
    watched = Watched(monkeypatch)
    learn_rspmn(paired_states(visits=10, seed=0))
    (groups,) = watched.groups
    assert len(np.unique(groups)) == VALUES
    assert watched.compared < 5, watched.compared


@pytest.mark.soak
def test_tens_of_thousands_of_values() -> None:
    """A walk on a line: learning takes memory in proportion to the states, a few KB for each."""
    states, episodes = 30_000, 15_000
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, (episodes, 20))
    x = np.cumsum(np.hstack([rng.integers(0, states, (episodes, 1)), 2 * a[:, :-1] - 1]), axis=1)
    x = np.clip(x, 0, states - 1)
    e, t = np.indices(x.shape)
    table = {
        "e": e.ravel(),
        "t": t.ravel(),
        "x": x.ravel(),
        "a": a.ravel(),
        "u": 1.0 * (x == 0).ravel(),
    }
    schema = Schema([["x"], ["a"]], ["a"], "u", kinds={"x": "categorical"})
    windows = Windows.from_episodes(
        Episodes.from_long(table, schema, episode="e", time="t", ending="cut")
    )
    before = getrusage(RUSAGE_SELF).ru_maxrss  # KB
    model, _ = learn_rspmn(windows, LearnConfig(successors="counts"))
    assert model.num_interfaces > 25_000
    assert getrusage(RUSAGE_SELF).ru_maxrss - before < 25 * states
