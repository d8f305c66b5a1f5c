"""What people do in the page of a model: look, click, type, with a mouse and without."""

import re
from pathlib import Path
from typing import Any

import pytest

from rspmn.model import RSPMN

pytestmark = pytest.mark.browser

HORIZON = 20


def numbers(text: str) -> list[float]:
    return [float(each) for each in re.findall(r"\d[\d.]*", text)]


def test_it_is_read_from_the_top(opened: Any, lake: Path, model: RSPMN) -> None:
    page = opened(lake)
    assert page.inner_text("h1") == "A lake"
    headings = page.locator("h2").all_inner_texts()
    assert headings[:2] == ["Before you use it", "Value of the policy"]
    assert page.locator(".warnings .warning").count() >= 1
    honest = model.honest_value(HORIZON)
    assert f"{honest.point:.4g}" in page.inner_text("section:nth-of-type(2)")
    assert page.locator(".chart svg").count() >= 4


def test_a_state_of_the_graph(opened: Any, lake: Path, model: RSPMN) -> None:
    page = opened(lake, "states")
    page.wait_for_selector(".graph[data-ready]")
    page.fill("input[type=search]", "14")
    page.click(".found button")
    panel = page.locator("aside")
    best = model.policy(HORIZON).explain({"cell": 14})
    assert panel.locator("h3").inner_text() == "cell=14"
    taken = panel.locator("tr.taken").inner_text().replace("\n", " ")
    assert taken.startswith(best.decided["action"])  # type: ignore[index]
    action = best.actions[0]
    assert numbers(taken)[:3] == pytest.approx([action.utility, action.low, action.high], abs=1e-3)
    assert "more than the next best" in panel.locator(".why").inner_text()
    panel.locator(".leads button.link").first.click()
    assert panel.locator("h3").inner_text() != "cell=14"


def test_a_click_into_the_graph(opened: Any, lake: Path) -> None:
    page = opened(lake, "states")
    page.wait_for_selector(".graph[data-ready]")
    place = page.evaluate(
        """() => {
            const graph = document.querySelector(".graph")._cyreg.cy;
            const at = graph.getElementById("0").renderedPosition();
            return [at.x, at.y];
        }"""
    )
    box = page.locator(".graph").bounding_box()
    page.mouse.click(box["x"] + place[0], box["y"] + place[1])
    page.wait_for_selector("aside h3")
    assert page.inner_text("aside h3") == "cell=0"
    before = page.evaluate("() => document.querySelector('.graph')._cyreg.cy.zoom()")
    page.click("button[aria-label='Zoom in']")
    assert page.evaluate("() => document.querySelector('.graph')._cyreg.cy.zoom()") > before
    page.select_option(".tools select", "decision")
    assert "down" in page.inner_text(".legend")


def test_the_policy_is_searched_and_sorted(opened: Any, lake: Path, model: RSPMN) -> None:
    page = opened(lake, "policy")
    rows = page.locator("tbody tr")
    assert rows.count() == model.num_state_interfaces
    page.click("button.sort >> text=value")
    page.click("button.sort >> text=value")
    values = page.locator("tbody tr td:nth-of-type(3)").all_inner_texts()
    found = [float(v) for v in values if v != "–"]
    assert found == sorted(found, reverse=True)
    page.fill("input[type=search]", "down")
    table = model.policy(HORIZON).table()
    assert rows.count() == table["action"].count("down")
    assert page.locator(".tree li").count() > 3
    page.locator("button.link >> text=why").first.click()
    page.wait_for_selector("aside h3")
    assert page.url.endswith("#states")


def test_a_state_is_asked_about(opened: Any, lake: Path, model: RSPMN) -> None:
    page = opened(lake, "ask")
    page.select_option("#ask-cell", "6")
    policy = model.policy(HORIZON)
    assert page.inner_text("h3") == f"action: {policy.act({'cell': 6})}"
    page.select_option("#ask-cell", "")
    assert page.inner_text("h3") == f"action: {policy.act({})}"
    assert "averaged over logged values" in page.inner_text(".warnings")
    page.check("input[type=checkbox]")
    assert page.inner_text("h3") == f"action: {policy.act(None)}"


def test_episodes_are_played(opened: Any, lake: Path) -> None:
    page = opened(lake, "episodes")
    assert page.inner_text(".player span").startswith("step 1 of")
    page.click("button[aria-label='Next step']")
    assert page.inner_text(".player span").startswith("step 2 of")
    page.click("text=Play")
    page.wait_for_selector("text=step 3 of")
    page.click("text=Pause")
    page.check("text=current practice")
    assert page.inner_text(".player span").startswith("step 1 of")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(opened: Any, lake: Path, scheme: str) -> None:
    page = opened(lake, "states", color_scheme=scheme)
    page.wait_for_selector(".graph[data-ready]")
    assert (_lightness(page) > 0.5) == (scheme == "light")
    other = "dark" if scheme == "light" else "light"
    page.select_option(".theme select", other)
    assert (_lightness(page) > 0.5) == (other == "light")
    assert _contrast(page, "main p") > 4.5  # WCAG AA
    assert _contrast(page, ".legend") > 4.5


def test_a_narrow_screen(opened: Any, lake: Path) -> None:
    page = opened(lake, viewport={"width": 360, "height": 740})
    for view in ("Overview", "States", "Policy", "Ask", "Episodes"):
        page.click(f"nav a >> text={view}")
        page.wait_for_timeout(200)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, view


def test_with_the_keyboard_alone(opened: Any, lake: Path) -> None:
    page = opened(lake)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.locator("nav a >> text=States").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".graph[data-ready]")
    page.locator(".graph").focus()
    page.keyboard.press("ArrowRight")
    first = page.inner_text("aside h3")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("aside h3") != first
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("aside h3") == first
    page.keyboard.press("Escape")
    assert page.locator("aside h3").count() == 0
    for _ in range(40):  # every control is reached, and the focus is never lost
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            break
    outline = "getComputedStyle(document.querySelector('nav a')).outlineStyle"
    page.locator("nav a").first.focus()
    assert page.evaluate(outline) in ("solid", "none")


def _rgb(text: str) -> list[float]:
    return [float(number) / 255 for number in re.findall(r"[\d.]+", text)[:3]]


def _luminance(text: str) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _rgb(text)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _lightness(page: Any) -> float:
    return _luminance(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))


def _contrast(page: Any, selector: str) -> float:
    text = page.evaluate(f"getComputedStyle(document.querySelector('{selector}')).color")
    pair = sorted([_luminance(text), _lightness(page)])
    return (pair[1] + 0.05) / (pair[0] + 0.05)
