"""The SPMN of whole sequences."""

import pytest

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


def test_budgets_and_lengths() -> None:
    lake = DOMAINS["FrozenLake"]()
    model, info = learn_sequence_spmn(
        lake.generate(500, 6, 0, "padded"), LearnConfig(max_nodes=300)
    )
    assert info.stopped_by == "nodes"
    assert len(model.network) < 3000
    with pytest.raises(DataError, match="episodes of one length"):
        learn_sequence_spmn(lake.generate(500, 6, 0, "flags"))
