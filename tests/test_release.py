"""What is published: the version is one, and wheel and sdist work in an empty environment."""

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import rspmn

ROOT = Path(__file__).parent.parent
SMOKE = """
import rspmn
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.export import to_python
model, _ = rspmn.learn_rspmn(frozen_lake().generate(200, 8, 0))
policy = model.policy(8)
names = {}
exec(to_python(policy), names)
assert names["act"]({"cell": 0}) == policy.act({"cell": 0})
"""


def test_the_version_is_one() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.*)$", citation, re.M) == [rspmn.__version__]


@pytest.mark.soak
def test_wheel_and_sdist_work_in_an_empty_environment(tmp_path: Path) -> None:
    def run(*words: object) -> str:
        done = subprocess.run(
            [*map(str, words)], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        return done.stdout

    run(sys.executable, "-m", "build", "--outdir", tmp_path / "dist", ROOT)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    (sdist,) = (tmp_path / "dist").glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
    assert "rspmn/py.typed" in names
    assert any(name.startswith("rspmn/report/assets/") for name in names)
    assert not any(name.startswith(("tests/", "reproductions/")) for name in names)
    with tarfile.open(sdist) as archive:
        inside = {name.split("/", 1)[-1] for name in archive.getnames()}
    assert {"CITATION.cff", "CHANGELOG.md", "LICENSE", "README.md", "conftest.py"} <= inside
    for number, package in enumerate((wheel, sdist)):
        folder = tmp_path / f"empty{number}"
        run(sys.executable, "-m", "venv", folder)
        run(folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", package)
        run(folder / "bin" / "python", "-c", SMOKE)
        assert "rspmn" in run(folder / "bin" / "rspmn", "--version")
