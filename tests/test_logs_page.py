"""docs/logs.md: every key is there, and every example is read."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from rspmn import Episodes, LogFormat, Schema, Windows, windows
from same_windows import assert_same

PAGE = Path(__file__).parents[1].joinpath("docs", "logs.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
WHOLE: dict[str, Any] = tomllib.loads(BLOCKS[0])


def test_every_key_has_an_example() -> None:
    given = [tomllib.loads(block) for block in BLOCKS[1:]]
    keys = {key for each in given for key in each}
    assert keys == {"order", "decisions", "utility", "kinds", "available", "missing", "log"}
    shown = {key for each in given for key in each.get("log", {})}
    assert shown == {field.name for field in fields(LogFormat)} | {"in_order"}


@pytest.mark.parametrize("block", BLOCKS)
def test_every_example_is_read(block: str) -> None:
    found = tomllib.loads(block)
    log = found.get("log", {})
    if "kinds" in found:
        found["order"] = [["lactate", "map", "age"], ["antibiotics"]]
    assert Schema.from_dict({**WHOLE, **found, "log": log}).log == LogFormat.from_dict(log)


def test_the_log_is_read_as_the_page_says(tmp_path: Path) -> None:
    (table,) = re.findall(r"```csv\n(.*?)```", PAGE, re.DOTALL)
    (said,) = re.findall(r"```text\n(.*?)\n```", PAGE, re.DOTALL)
    log = tmp_path / "ward.csv"
    log.write_text(table)
    schema = Schema.from_dict(WHOLE)
    episodes = Episodes.from_log(log, schema)
    assert repr(episodes) == said
    assert [row["lactate"] for row in episodes[0]] == [2.4, 0.5, 1.7]
    assert episodes.columns[schema.utility].data.tolist() == [-1.0, -1.5, 9.0, -1.7, -11.0]
    assert_same(windows(log, schema), Windows.from_episodes(episodes))
    filled = Schema.from_dict({**WHOLE, "utility": "-(cost or 0)"})
    assert Episodes.from_log(log, filled).num_steps == 5
