"""Integers that are predicted by how far they move: by hand, in draws, and in the log of a shop."""

from pathlib import Path

import numpy as np
import pytest

import rspmn
from effort import seeds
from rspmn import Schema
from rspmn.data.episodes import Episodes
from rspmn.envs.inventory import inventory
from rspmn.learn import LearnConfig, learn_rspmn
from rspmn.learn.successors.factored import Learned
from rspmn.learn.successors.transitions import Counts, SuccessorWeights, Transitions
from rspmn.trust.factors import LeafCounts
from rspmn.types import Array

#: How far "go" leads up, of four steps. It was never made at 3, 6 and 7.
UP = (0, 1, 1, 2)


def walk(kind: str = "integer", copies: int = 6) -> Episodes:
    """Return a log of x in 0 … 7 that stays, or moves up as `UP` says."""
    rows: list[tuple[object, ...]] = []
    for x in range(8):
        for k, up in enumerate(UP * copies):
            for action, after in (("stay", x), ("go", x + up)):
                if action == "stay" or (x < 6 and x != 3):
                    episode = f"{x} {k} {action}"
                    rows.append((episode, 0, x, action, float(x), False))
                    rows.append((episode, 1, after, None, None, False))
    names = "episode", "time", "x", "a", "u", "over"
    table = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    kinds = {"x": kind, "a": "categorical", "u": "continuous"}
    schema = Schema([["x"], ["a"]], ["a"], "u", kinds)
    return Episodes.from_long(table, schema, terminated="over")


def learned_factors(log: Episodes) -> tuple[Transitions, Learned]:
    seen = []

    def keep(transitions: Transitions) -> tuple[SuccessorWeights, None]:
        seen.append(transitions)
        return Counts()(transitions)

    learn_rspmn(log, LearnConfig(successors=keep))
    return seen[0], Learned(seen[0], ~seen[0].over)


def expected_after(learned: Learned, x: int, action: int) -> Array:
    """Return the distribution of the number after a decision, 0 stay and 1 go."""
    contexts = learned.contexts
    at = [contexts.names.index(name) for name in ("x", "a")]
    row = contexts.codes[[0]].copy()
    row[0, at] = x + 1, 2 - action  # codes begin with 1, those of actions are sorted
    asked = type(contexts)(contexts.names, contexts.sizes, row, contexts.ordered)
    return np.asarray(learned.factors.tied.distribution(asked).toarray()[0])


def test_a_move_is_learned_once_for_all_numbers() -> None:
    """Two leaves, "stay" and "go": of differences 0, and of 0, 1 and 2 with 1/4, 1/2 and 1/4."""
    _, learned = learned_factors(walk())
    assert learned.factors.tied.num_leaves(1) == (2,)
    for x in range(6):  # at 3 as well, where it was never made
        expected = np.zeros(8)
        expected[x : x + 3] = 1 / 4, 1 / 2, 1 / 4
        assert expected_after(learned, x, 1) == pytest.approx(expected)
        assert expected_after(learned, x, 0) == pytest.approx(np.eye(8)[x])


def test_a_move_that_depends_on_nothing() -> None:
    """One leaf: 1 is added in half of the steps; at 5 too, where the only step stayed."""
    rows: list[tuple[object, ...]] = []
    for x in range(8):
        for k in range(1 if x == 5 else 24):
            rows.append((f"{x} {k}", 0, x, "ab"[k // 2 % 2], 0.0, False))
            rows.append((f"{x} {k}", 1, x + k % 2, None, None, False))
    names = "episode", "time", "x", "a", "u", "over"
    table = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    schema = Schema([["x"], ["a"]], ["a"], "u", {"x": "integer"})
    _, learned = learned_factors(Episodes.from_long(table, schema, terminated="over"))
    assert learned.factors.tied.num_leaves(1) == (1,)
    for x in range(8):
        expected = np.zeros(9)
        expected[x : x + 2] = 1 / 2
        assert expected_after(learned, x, 1) == pytest.approx(expected, abs=0.01)


def test_what_leads_beyond_the_known_numbers_leads_to_the_nearest() -> None:
    """From 6, two up is 8, which the log never had: 7, as one up, with 3/4; from 7 all is 7."""
    _, learned = learned_factors(walk())
    assert expected_after(learned, 6, 1) == pytest.approx([0, 0, 0, 0, 0, 0, 1 / 4, 3 / 4])
    assert expected_after(learned, 7, 1) == pytest.approx(np.eye(8)[7])


def test_untried_moves_do_not_lead_back() -> None:
    """ "go" was never made at 7, and costs as much as "stay" there: it leads nowhere else."""
    rows: list[tuple[object, ...]] = []
    for x in range(8):
        for k in range(6):
            for action, after in (("stay", x), ("go", x + 1)):
                if after < 8:
                    rows.append((f"{x} {k} {action}", 0, x, action, -float(x), False))
                    rows.append((f"{x} {k} {action}", 1, after, None, None, False))
    names = "episode", "time", "x", "a", "u", "over"
    table = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    schema = Schema([["x"], ["a"]], ["a"], "u", {"x": "integer"})
    model, _ = learn_rspmn(Episodes.from_long(table, schema, terminated="over"))
    policy = model.policy(5, offer="all")
    assert policy.value({"x": 7}) == pytest.approx(-35.0)


def test_numbers_that_are_not_exact_do_not_move() -> None:
    """Of times in nanoseconds as floats, those of one microsecond are the same."""
    rows: list[tuple[object, ...]] = []
    for k in range(80):
        time = 1_700_000_000_000_000_000 + k % 8
        rows += [(k, 0, time, "go", 0.0, False), (k, 1, time + (k % 8 < 7), None, None, False)]
    names = "episode", "time", "x", "a", "u", "over"
    table = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    schema = Schema([["x"], ["a"]], ["a"], "u", {"x": "integer"})
    _, learned = learned_factors(Episodes.from_long(table, schema, terminated="over"))
    assert learned.factors.tied.num_leaves(1)[0] >= 7


def test_names_do_not_move() -> None:
    """Of names each has leaves of its own."""
    _, learned = learned_factors(walk("categorical"))
    assert learned.factors.tied.num_leaves(1)[0] >= 8


def test_numbers_that_are_reset_do_not_move() -> None:
    """Where "go" leads to 0 from everywhere, where it leads to is the likelier explanation."""
    rows: list[tuple[object, ...]] = []
    for k in range(80):
        rows += [(k, 0, k % 8, ("stay", "go")[k // 8 % 2], 0.0, False)]
        rows += [(k, 1, (k % 8, 0)[k // 8 % 2], None, None, False)]
    names = "episode", "time", "x", "a", "u", "over"
    table = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    schema = Schema([["x"], ["a"]], ["a"], "u", {"x": "integer"})
    _, learned = learned_factors(Episodes.from_long(table, schema, terminated="over"))
    for x in range(8):
        assert expected_after(learned, x, 1) == pytest.approx(np.eye(8)[0])
        assert expected_after(learned, x, 0) == pytest.approx(np.eye(8)[x])


def test_leaves_of_one_move_err_together(tmp_path: Path) -> None:
    """In a draw, one up is as likely from each number; the file keeps which cells are the same."""
    model, _ = learn_rspmn(walk())
    assert model.counts is not None
    factors = model.counts.factors
    assert factors is not None
    assert factors.parameter
    counts = LeafCounts(factors, max(factors.outcome) + 1)
    drawn = counts.draw(50, np.random.default_rng(0))
    wide = [leaf for leaf in range(len(counts.first)) if (counts.leaf == leaf).sum() == 3]
    assert len(wide) == 5  # of "go" from 0, 1, 2, 4 and 5
    shares = [drawn[:, counts.leaf == leaf] for leaf in wide]
    for other in shares[1:]:
        assert other == pytest.approx(shares[0])
    assert shares[0].std() > 0
    model.save(tmp_path / "model.json")
    again = rspmn.RSPMN.load(tmp_path / "model.json")
    assert again.counts == model.counts


@pytest.mark.parametrize("seed", seeds(1, 20))
def test_a_shop_is_not_undersold(seed: int) -> None:
    """Stock may be any of 31 numbers: the honest value is that of the shop, within a tenth.

    Learned by where stock gets to, with few values expected, there were more leaves than 750, and
    the honest value was a fifth too low.
    """
    world, horizon = inventory(most=30), 14
    model, info = learn_rspmn(world.generate(400, 28, seed, "final"))
    policy = model.policy(horizon)
    true, honest = rspmn.true_value(world, policy, horizon), policy.honest_value()
    assert true > 2 * world.evaluate(None, horizon)
    assert abs(honest.point - true) < true / 10
    assert info.future.leaves[0] < 700
