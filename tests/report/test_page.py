"""The page as a file: data that cannot break out of it, and nothing that is fetched."""

import json
import re
from hashlib import sha256
from pathlib import Path

import pytest

import rspmn.report
from rspmn.cli import main
from rspmn.data.write import write_episodes
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.errors import ModelFileError
from rspmn.learn import learn_rspmn
from rspmn.report import report_page, write_report
from rspmn.report.page import asset

WEB = Path(__file__).parents[2] / "web"
HOSTILE = "</script><!-- <img src=x onerror=alert(1)> \u2028 &lt; ' \" `"


def embedded(page: str) -> object:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_hostile_names_stay_data() -> None:
    data = {"title": HOSTILE, "nodes": [{"text": HOSTILE}]}
    page = report_page(data)
    assert embedded(page) == data
    assert "<img src=x" not in page
    head = page[: page.index("<style>")]
    assert "<title>&lt;/script&gt;" in head


def test_nothing_is_fetched() -> None:
    page = report_page({"title": "x"})
    assert "default-src 'none'" in page
    assert "connect-src 'none'" in page
    assert "connect-src 'self'" in report_page({"title": "x"}, live=True)
    without = page.replace(asset("page.js"), "")
    assert not re.search(r"(src|href)=[\"']?https?:", without)
    assert "</script" not in asset("page.js").lower()


def test_what_is_bundled_keeps_its_licences() -> None:
    script = asset("page.js")
    for name in ("@observablehq/plot", "cytoscape", "preact", "d3-scale"):
        assert f"{name} " in script[:100_000]
    assert script.startswith("/*!")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = frozen_lake().generate(300, 6, 0)
    learn_rspmn(log)[0].save(tmp_path / "lake.json")
    write_episodes(log, tmp_path / "log.csv")
    page = tmp_path / "report.html"
    words = ["report", str(tmp_path / "lake.json"), "--log", str(tmp_path / "log.csv")]
    assert main([*words, "--horizon", "6", "-o", str(page)]) == 0
    assert "11 states" in capsys.readouterr().out.splitlines()[-1]
    data = embedded(page.read_text(encoding="utf-8"))
    assert isinstance(data, dict)
    assert (data["title"], data["log"]["episodes"]) == ("lake.json", 300)
    assert main([*words[:2], "-o", "x.txt"]) == 2
    assert "ending in .html" in capsys.readouterr().err


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="cannot be written"):
        write_report(tmp_path / "no" / "such" / "page.html", {"title": "x"})


def test_what_is_built_is_of_the_sources() -> None:
    """`make web` writes the digests of both; it needs Node, and this test does not."""
    digests = json.loads(asset("digests.json"))
    for folder, files in (
        (WEB, digests["sources"]),
        (Path(rspmn.report.__file__).parent / "assets", digests["built"]),
    ):
        found = {name: sha256((folder / name).read_bytes()).hexdigest() for name in files}
        assert found == files, "run `make web`"
    listed = {f"src/{path.name}" for path in (WEB / "src").iterdir()}
    assert listed == {name for name in digests["sources"] if name.startswith("src/")}
