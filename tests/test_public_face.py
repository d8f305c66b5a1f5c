"""`import rspmn` is all that the first hour needs: every public name resolves, and late."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rspmn

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
FIRST_HOUR = {
    "Schema", "Episodes", "Windows", "windows", "store_windows", "collect", "from_minari",
    "examine", "doctor", "LearnConfig", "learn_rspmn", "learn_spmn", "learn_spn", "refit",
    "learn", "RSPMN", "SPMN", "load", "Policy", "true_value",
}  # fmt: skip


def run(code: str) -> str:
    """Return what a fresh Python prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_every_public_name_resolves() -> None:
    assert set(rspmn.__all__) >= FIRST_HOUR
    for name in rspmn.__all__:
        assert getattr(rspmn, name) is not None


def test_they_resolve_in_a_fresh_python() -> None:
    """Nothing here may depend on what other tests have imported."""
    code = "import rspmn; [getattr(rspmn, name) for name in rspmn.__all__]; print(dir(rspmn))"
    assert run(code).strip() == str(sorted(rspmn.__all__))
    assert run("from rspmn import *; print(learn_rspmn.__name__)") == "learn_rspmn\n"


def test_type_checkers_see_the_same_names() -> None:
    source = Path(rspmn.__file__).read_text(encoding="utf-8")
    checking = next(node for node in ast.parse(source).body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in checking.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    homes = {name: home for home, names in rspmn._HOMES.items() for name in names}
    assert seen == homes | dict.fromkeys(rspmn._MODULES, "rspmn")
    assert {*seen, "__version__"} == {*rspmn.__all__}


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'lern_rspmn'"):
        getattr(rspmn, "lern_rspmn")  # noqa: B009


def test_names_in_the_readme_resolve() -> None:
    """Those of import statements as modules, all others as attributes after `import rspmn`."""
    imported = set(re.findall(r"(?:from|import) (rspmn(?:\.\w+)+)", README))
    imported |= set(re.findall(r"\"(rspmn(?:\.\w+)+):", README))  # Gymnasium's "module:name"
    others = sorted(set(re.findall(r"\brspmn(?:\.[A-Za-z_]\w*)+", README)) - imported)
    assert "rspmn.windows" in others
    code = ["import rspmn", *others, "import " + ", ".join(sorted(imported)), "print('all')"]
    assert run("\n".join(code)) == "all\n"


def test_importing_rspmn_is_light() -> None:
    """Even numpy is imported when it is needed; engines, plots and data frames are."""
    heavy = "numpy", "matplotlib", "pandas", "polars", "narwhals", "scipy", "duckdb", "hypothesis"
    code = f"import rspmn, rspmn.cli, sys; print([m for m in {heavy} if m in sys.modules])"
    assert run(code) == "[]\n"
