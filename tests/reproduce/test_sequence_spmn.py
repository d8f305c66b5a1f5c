"""The SPMN of whole sequences."""

import pytest

from reproductions.paper_tables.histories import plan_of_histories
from reproductions.paper_tables.sequence_spmn import learn_sequence_spmn
from rspmn.envs.domains import DOMAINS
from rspmn.errors import DataError
from rspmn.learn import LearnConfig


def test_sequences_by_enumeration() -> None:
    """All that can be done in two steps of the grid, every way equally often: -2 at best."""
    grid = DOMAINS["GridUniverse"]()
    model, info = learn_sequence_spmn(grid.generate(500, 2, 0, "padded"))
    assert float(model.meu()) == pytest.approx(grid.optimum(2))
    assert info.stopped_by == ""
    assert model.schema.decisions == ("action@0", "action@1")


def test_the_paper_s_spmn_is_the_best_plan_by_logged_histories() -> None:
    """Nearly each of 4⁸ sequences of actions was logged once at most: the luckiest are chosen."""
    lake = DOMAINS["FrozenLake"]()
    log = lake.generate(300, 8, 0, "padded")
    model, _ = learn_sequence_spmn(log, LearnConfig.paper())
    promised, worth = plan_of_histories(log, lake)
    assert float(model.meu()) == pytest.approx(promised)
    assert promised > 2 * lake.optimum(8)
    assert worth < lake.optimum(8)


def test_a_plan_by_histories_that_were_all_logged_is_exact() -> None:
    grid = DOMAINS["GridUniverse"]()
    found = plan_of_histories(grid.generate(3000, 3, 0, "padded"), grid)
    assert found == pytest.approx((grid.optimum(3), grid.optimum(3)))


def test_budgets_and_lengths() -> None:
    lake = DOMAINS["FrozenLake"]()
    model, info = learn_sequence_spmn(
        lake.generate(500, 6, 0, "padded"), LearnConfig(max_nodes=300)
    )
    assert info.stopped_by == "nodes"
    assert len(model.network) < 3000
    with pytest.raises(DataError, match="episodes of one length"):
        learn_sequence_spmn(lake.generate(500, 6, 0, "flags"))
