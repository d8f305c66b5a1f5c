"""Large models: pages open soon, and say what they leave out."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rspmn.envs.taxi import taxi
from rspmn.learn import learn_rspmn
from rspmn.report import report_data, write_report
from small_models import chain

pytestmark = pytest.mark.browser

#: Seconds from opening a page to its graph, on a machine that does nothing else. Tests share
#: theirs, so they allow more.
SECONDS, SHARED = 3.0, 4.0


def seconds_to_graph(page: Any) -> float:
    page.wait_for_selector(".graph[data-ready]")
    return float(page.evaluate("performance.getEntriesByName('graph')[0].startTime")) / 1000


def test_400_states_of_a_taxi(opened: Any, tmp_path: Path) -> None:
    model, _ = learn_rspmn(taxi().generate(600, 50, 0))
    path = tmp_path / "taxi.html"
    write_report(path, report_data(model, horizon=20))
    page = opened(path, "states")
    assert seconds_to_graph(page) < SECONDS * SHARED
    states = int(page.get_attribute(".graph", "data-ready"))
    assert states >= 300
    page.fill("input[type=search]", "pickup")
    page.click(".found button")
    assert page.inner_text("tr.taken th").startswith("pickup")
    page.fill("input[type=number]", "50")
    page.keyboard.press("Enter")
    # The graph is drawn again after the page is painted: the old one stays until then.
    page.wait_for_selector(f".graph[data-ready]:not([data-ready='{states}'])")
    assert int(page.get_attribute(".graph", "data-ready")) <= 51


def test_5000_states(opened: Any, tmp_path: Path) -> None:
    size = 5000
    model = chain([
        {"go": (float(k % 7 == 0), {(k + 1) % size: 0.9, k: 0.1}), "stay": (0.0, {k: 1.0})}
        for k in range(size)
    ])  # fmt: skip
    visits = np.random.default_rng(0).permutation(size) + 1.0
    model = replace(model, visits=tuple(visits.tolist()))
    path = tmp_path / "large.html"
    write_report(path, report_data(model, horizon=5))
    page = opened(path, "states")
    assert "Only the 1,000 most visited of 5,000" in page.inner_text("section p")
    assert seconds_to_graph(page) < SECONDS * SHARED
    page.click("nav a >> text=Ask")
    least = int(np.argmin(visits))
    page.fill("#ask-x", str(least))
    assert "not in this page" in page.inner_text(".warnings")
    page.fill("#ask-x", str(int(np.argmax(visits))))
    assert page.inner_text("h3").startswith("a: ")
