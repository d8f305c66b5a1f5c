"""A real browser, and pages of models in it. `make test-browser` installs what it needs."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rspmn.data.episodes import Episodes
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.learn import learn_rspmn
from rspmn.model import RSPMN
from rspmn.report import report_data, write_report

#: Steps of an episode in the pages of the lake.
HORIZON = 20

Open = Callable[..., Any]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A browser of the system; Playwright's own is not needed."""
    playwright = pytest.importorskip("playwright.sync_api", reason="make test-browser installs it")
    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip("no chromium was found: apt-get install chromium, or set CHROMIUM")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Open]:
    """Opens a page; at the end, nothing must have been complained of in its console."""
    said: list[str] = []
    contexts = []

    def failed(request: Any) -> None:
        if "ABORTED" not in request.failure:  # the page has changed its question
            said.append(f"{request.url}: {request.failure}")

    def open_page(address: Path | str, view: str = "", **options: Any) -> Any:
        options.setdefault("viewport", {"width": 1200, "height": 900})
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: said.append(m.text) if m.type != "log" else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("requestfailed", failed)
        where = address.as_uri() if isinstance(address, Path) else address
        page.goto(f"{where}#{view}" if view else where)
        page.wait_for_selector("main")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []


@pytest.fixture(scope="session")
def log() -> Episodes:
    return frozen_lake().generate(1500, HORIZON, 0)


@pytest.fixture(scope="session")
def model(log: Episodes) -> RSPMN:
    return learn_rspmn(log)[0]


@pytest.fixture(scope="session")
def lake(model: RSPMN, log: Episodes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a lake."""
    path = tmp_path_factory.mktemp("pages") / "lake.html"
    write_report(path, report_data(model, log, HORIZON, title="A lake"))
    return path
