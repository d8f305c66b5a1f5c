"""The page that a server gives asks it."""

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from rspmn import Schema
from rspmn.model import RSPMN

pytestmark = pytest.mark.browser

HORIZON = 20


@pytest.fixture(scope="module")
def address(model: RSPMN, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    uvicorn = pytest.importorskip("uvicorn")
    from rspmn.serve import Served, make_app

    path: Path = tmp_path_factory.mktemp("served") / "lake.json"
    model.save(path)
    lawful = path.with_name("lawful.json")
    plain = model.schema
    schema = Schema(plain.order, plain.decisions, plain.utility, plain.kinds, plain.log,
                    {"left": "cell != 0"})  # fmt: skip
    replace(model, schema=schema).save(lawful)
    app = make_app(
        [Served("lake", path, HORIZON), Served("lawful", lawful, HORIZON)], token="secret"
    )
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def test_it_is_answered_by_the_server(opened: Any, address: str, model: RSPMN) -> None:
    page = opened(f"{address}/models/lake?token=secret", "ask")
    page.select_option("#ask-cell", "")
    page.wait_for_selector("text=Answered by the server")
    best = model.policy(HORIZON).explain({}).actions[0]
    found = re.findall(r"[\d.]+", page.inner_text("tr.taken"))
    assert [float(each) for each in found[1:3]] == pytest.approx([best.low, best.high], abs=1e-3)
    assert page.inner_text("h3") == f"action: {best.value}"


def test_what_is_not_available_is_no_action(opened: Any, address: str) -> None:
    page = opened(f"{address}/models/lawful?token=secret", "ask")
    page.select_option("#ask-cell", "0")
    page.wait_for_selector("text=Answered by the server")
    actions = page.locator("main tbody th").all_inner_texts()
    assert sorted(action.split()[0] for action in actions) == ["down", "right", "up"]
    assert "not available" not in page.inner_text("main")


def test_models_are_listed(browser: Any, address: str) -> None:
    page = browser.new_page()
    page.goto(f"{address}/?token=secret")
    page.click("text=lake")
    page.wait_for_selector("h1")
    assert page.inner_text("h1") == "lake"
    page.close()
