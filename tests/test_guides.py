"""Every block of the pages that teach runs as pasted, in an empty folder. See `make docs`."""

import sys
from pathlib import Path

import pytest

from pages import ROOT, Here, blocks_of, run_blocks

PAGES = (
    "index", "quick_start", "your_log", "concepts", "single_decisions", "by_hand", "command_line",
    "gymnasium", "factored_futures", "report",
    "plots", "policy_out",
)  # fmt: skip


@pytest.mark.pages
@pytest.mark.parametrize("page", PAGES)
def test_every_block_runs_as_pasted(page: str, tmp_path: Path) -> None:
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "activate").write_text("")
    blocks = blocks_of(ROOT / "docs" / f"{page}.md")
    assert blocks
    run_blocks(Here(tmp_path, python=sys.executable), blocks)
