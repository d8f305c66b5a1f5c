"""How tests run: examples of hypothesis, and examples in documents."""

import os

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Set hypothesis up: new examples on every run at a desk, the same ones in CI.

    Only here, so that pytest says that it has started before this takes its half second.
    """
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "desk", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60
    )
    settings.register_profile("ci", settings.get_profile("desk"), derandomize=True)
    settings.load_profile("ci" if os.environ.get("CI") else "desk")


@pytest.fixture(autouse=True)
def _documents_write_elsewhere(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Run what docs and docstrings show in a folder of its own."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
        monkeypatch.chdir(tmp_path_factory.mktemp("document"))
