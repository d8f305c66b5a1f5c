"""The notebooks run from top to bottom, and each cell's last line shows something."""

import ast
import json
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from effort import SOAK

NOTEBOOKS = sorted(Path(__file__).parents[1].joinpath("notebooks").glob("*.ipynb"))
#: Numbers that are smaller outside `make soak`, so that a notebook takes a moment.
SMALLER = {
    "20_000": "2_000",
    "[300, 1250, 5000, 2_000]": "[500, 2_000]",
    "range(2000)": "range(300)",
}


def test_there_are_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["lake", "oil_wildcatter", "your_own_log"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path: Path, tmp_path: Path) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = 0
    with chdir(tmp_path):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                shown += run("".join(cell["source"]), names)
    assert shown >= 3


def run(source: str, names: dict[str, Any]) -> bool:
    """Run a cell as a notebook does; tell whether its last expression shows itself."""
    source = source.replace("%matplotlib inline\n", "")  # is not Python
    for large, small in () if SOAK else SMALLER.items():
        source = source.replace(large, small)
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    if last is None or not isinstance(last, ast.Expr):
        return False
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    for method in ("_repr_html_", "_repr_svg_"):
        if hasattr(value, method):
            return bool(getattr(value, method)())
    return value is not None
