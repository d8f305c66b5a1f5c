"""Imports point one way: schema ← data, circuit ← model ← infer ← learn ← evaluate ← cli."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import rspmn

SOURCE = Path(rspmn.__file__).parent

#: What each part may import, besides itself.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "values": {"errors"},
    "files": set(),
    "schema": {"values", "errors", "files"},
    "data": {"schema", "values", "errors", "files"},
    "circuit": {"values", "errors"},
    "conformity": {"circuit", "schema", "errors"},
    "spmn": {"conformity", "circuit", "schema", "values", "errors"},
    "model": {"conformity", "circuit", "data", "schema", "values", "errors"},
    "model_file": {"model", "spmn", "circuit", "schema", "errors", "files"},
    "infer": {"model", "spmn", "circuit", "data", "schema", "values", "errors"},
    "learn": {"infer", "model", "spmn", "circuit", "data", "schema", "values", "errors"},
    "envs": {"model", "circuit", "data", "schema", "values", "errors"},
    "evaluate": {
        "envs", "infer", "model", "spmn", "circuit", "data", "schema", "values", "errors",
    },
    "baselines": {
        "learn", "envs", "infer", "model", "spmn", "circuit", "data", "schema", "values", "errors",
    },
    "doctor": {"learn", "data", "schema", "errors"},
    "reproduce": {
        "baselines", "evaluate", "learn", "infer", "envs", "model", "circuit", "data", "schema",
        "values", "errors", "files",
    },
    "cli": {
        "__init__", "doctor", "reproduce", "baselines", "evaluate", "learn", "infer", "envs",
        "model",
        "model_file", "spmn", "circuit", "data", "schema", "values", "errors", "files",
    },
    "__main__": {"cli"},
    "__init__": {"model", "envs", "data", "circuit", "schema", "values", "errors"},
}  # fmt: skip

#: Methods that open a door to a later part: they import it when they are called.
DOORS: dict[str, set[str]] = {
    "model": {"model_file", "infer"},
    "spmn": {"model_file", "infer"},
}


def part(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Return the parts of rspmn that a file imports, and whether on loading."""
    later = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name.split(".")[0] == "rspmn":
                yield [*name.split("."), "__init__"][1], id(node) not in later


def test_imports_point_one_way() -> None:
    for path in sorted(SOURCE.rglob("*.py")):
        here = part(path)
        for target, on_loading in imported(ast.parse(path.read_text(encoding="utf-8"))):
            allowed = ALLOWED[here] | {here} | (set() if on_loading else DOORS.get(here, set()))
            assert target in allowed, f"{path.relative_to(SOURCE)} imports rspmn.{target}"


def test_the_table_has_no_cycle() -> None:
    left = {name: set(needs) for name, needs in ALLOWED.items()}
    while left:
        free = {name for name, needs in left.items() if not needs & set(left)}
        assert free, f"a cycle among {sorted(left)}"
        left = {name: needs for name, needs in left.items() if name not in free}


def test_importing_rspmn_is_light() -> None:
    """Engines, plots and data frames are imported when they are used."""
    heavy = "matplotlib", "pandas", "polars", "narwhals", "scipy", "sklearn", "duckdb", "hypothesis"
    code = f"import rspmn, rspmn.cli, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_no_pickle_no_print_no_broad_except() -> None:
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            assert called not in ("eval", "exec"), path
            assert called != "print" or part(path) == "cli", path
            if isinstance(node, ast.Import | ast.ImportFrom):
                assert "pickle" not in ast.unparse(node), path
            if isinstance(node, ast.ExceptHandler):
                assert node.type is not None, path
                assert ast.unparse(node.type) != "Exception", path
