"""How tests run: the examples of hypothesis, and where examples in documents write."""

import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule

#: Modules that tests share. As doctest modules they would be imported a second time.
collect_ignore = [
    str(path)
    for shared in ("tests/[!t]*.py", "tests/conformance/*.py")
    for path in Path(__file__).parent.glob(shared)
]

#: Modules that take longest. They are run first: one process would wait for the other otherwise.
LONGEST = ("test_readme.py", "test_reproduce.py", "test_factored.py", "test_engines.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest modules first."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[Any], list[Any]]:
    """Look for doctests where there are some: not in tests, each of which would be read twice."""
    found = yield
    is_test = file_path.name.startswith("test_")
    return [each for each in found if not (is_test and isinstance(each, DoctestModule))]


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Set hypothesis up: new examples on every run at a desk, the same ones in CI.

    `make soak` tries fifty times as many, or a share of these (SHARE=0.1). This is done here and
    not on import, so that pytest shows that it has started before it takes its half second.
    """
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "desk", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=12
    )
    settings.register_profile("ci", settings.get_profile("desk"), derandomize=True)
    most = max(12, round(600 * float(os.environ.get("SHARE", "1"))))
    settings.register_profile("soak", settings.get_profile("desk"), max_examples=most)
    wanted = "soak" if os.environ.get("SOAK") else "ci" if os.environ.get("CI") else "desk"
    settings.load_profile(wanted)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tell coverage, if it is measured, which test runs: tests/mutation.py asks for that."""
    if "coverage" in sys.modules:
        from coverage import Coverage

        current = Coverage.current()
        if current is not None:
            current.switch_context(item.nodeid)


@pytest.fixture(autouse=True)
def _documents_write_elsewhere(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Run the examples of documents and docstrings in a folder of their own."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
        monkeypatch.chdir(tmp_path_factory.mktemp("document"))
