"""Pictures of the page of a model for docs/img, made in a browser of the system.

make screenshots
"""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from rspmn.doctor import examine
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.envs.taxi import taxi
from rspmn.learn import learn_rspmn
from rspmn.report import report_data, write_report

IMAGES = Path(__file__).parent.parent / "docs" / "img"
WIDE, NARROW = {"width": 1120, "height": 800}, {"width": 390, "height": 760}


def main() -> None:
    """Make all pictures."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        sys.exit("no chromium was found: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        lake, cab = Path(folder) / "lake.html", Path(folder) / "taxi.html"
        write_report(lake, _lake())
        model, _ = learn_rspmn(taxi().generate(3000, 50, 0))
        write_report(cab, report_data(model, horizon=50, title="Taxi"))
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        shots: list[tuple[str, Path, str, dict[str, int], str]] = [
            ("report_overview", lake, "", WIDE, "light"),
            ("report_states", lake, "states", WIDE, "light"),
            ("report_dark", cab, "states", WIDE, "dark"),
            ("report_policy", lake, "policy", WIDE, "light"),
            ("report_ask", lake, "ask", WIDE, "light"),
            ("report_episodes", lake, "episodes", WIDE, "dark"),
            ("report_narrow", lake, "ask", NARROW, "light"),
        ]
        for name, page, view, size, scheme in shots:
            _shoot(browser, page, view, size, scheme, IMAGES / f"{name}.png")
        browser.close()


def _lake() -> dict[str, Any]:
    log = frozen_lake().generate(3000, 20, 0)
    model, _ = learn_rspmn(log)
    findings = examine(log.to_long(), model.schema).findings
    return report_data(model, log, 20, findings=findings, title="A frozen lake")


def _shoot(
    browser: Any, path: Path, view: str, size: dict[str, int], scheme: str, image: Path
) -> None:
    page = browser.new_page(viewport=size, color_scheme=scheme)
    page.goto(f"{path.as_uri()}#{view}")
    page.wait_for_selector("h2")
    if view == "states":
        page.wait_for_selector(".graph[data-ready]")
        page.locator(".graph").press("ArrowRight")
        page.locator("h1").click()
        page.wait_for_selector("aside table")
    if view == "ask" and size == WIDE:
        page.select_option("#ask-cell", "14")
        page.select_option("#left", "5")
    if view == "episodes":
        for _ in range(5):
            page.click("button[aria-label='Next step']")
    page.wait_for_timeout(600)
    page.screenshot(path=image)
    page.close()


if __name__ == "__main__":
    main()
