"""The map from the paper to the code leads somewhere."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAP = (ROOT / "docs" / "paper_map.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`((?:rspmn|reproductions)[\w.]+)`", MAP)))
TESTS = sorted(set(re.findall(r"`(tests/[\w/.]+::\w+)`", MAP)))


@pytest.mark.parametrize("name", NAMES)
def test_every_name_exists(name: str) -> None:
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        fields: dict[str, object] = {}
        for part in parts[cut:]:
            fields = getattr(found, "__dataclass_fields__", {})
            found = getattr(found, part, fields.get(part))
            assert found is not None, name
        return
    pytest.fail(f"{name} does not exist")


@pytest.mark.parametrize("name", TESTS)
def test_every_test_exists(name: str) -> None:
    path, _, function = name.partition("::")
    assert f"def {function}(" in (ROOT / path).read_text(encoding="utf-8")


def test_the_map_is_complete_for_sections_2_3_and_5() -> None:
    rows = [line for line in MAP.splitlines() if line.startswith("| ")]
    for definition in range(1, 9):
        assert any(f"| Definition {definition}, " in row for row in rows), definition
    assert any("| Theorem 1, " in row for row in rows)
    for section in ("Section 2", "Section 3", "Section 5"):
        assert f"## {section}" in MAP
    for row in rows:
        if set(row) - set("|- ") and "| code |" not in row:
            assert any(f"`{home}" in row for home in ("rspmn.", "reproductions.", "tests/")), row
