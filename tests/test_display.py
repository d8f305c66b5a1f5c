"""What notebooks show: HTML and SVG that hold what is asked for, with names that are hostile."""

import io
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import rspmn
from reproductions.single_shot import oil_wildcatter
from rspmn.cli import main
from rspmn.data.write import write_episodes
from rspmn.display import table_html
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.envs.paper_grid import paper_grid
from rspmn.learn.config import progress_bar


def well_formed(html: str) -> str:
    """Return all text of HTML whose tags are closed."""
    return "".join(ElementTree.fromstring(f"<div>{html}</div>").itertext())


def test_objects_show_themselves() -> None:
    world = frozen_lake()
    log = world.generate(300, 8, 0)
    model, _ = rspmn.learn_rspmn(log)
    problem = oil_wildcatter()
    single, _ = rspmn.learn_spmn(problem.sample(500, 0), problem.schema)
    policy = model.policy(8)
    shown: list[tuple[Any, list[str]]] = [
        (world.schema, ["cell", "decision", "integer", "utility"]),
        (log, ["300 episodes", "cell", "action"]),
        (model, ["interface nodes", "11", "logged steps"]),
        (single, ["test, drill", "500"]),
        (policy, ["Policy(8 steps", "visits", "down"]),
        (policy.explain({"cell": 14}), ["decision: action=", "effect of each variable"]),
        (rspmn.examine(log.to_long(), world.schema), ["in 300 episodes", "decision"]),
    ]
    for each, words in shown:
        text = well_formed(each._repr_html_())
        for word in words:
            assert word in text, (type(each), word)
    grid = paper_grid()
    assert "<svg" in (grid.template._repr_svg_() or "")
    assert model.unfold(8)._repr_svg_() is None  # too many nodes to be read


def test_names_are_escaped() -> None:
    html = table_html({"<script>": ["&<b>"] * 30}, "a < b")
    assert "<script>" not in html
    assert well_formed(html).endswith("and 10 rows more")


def test_a_printed_diagnosis_is_that_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.csv"
    write_episodes(frozen_lake().generate(60, 8, 0), path)
    frozen_lake().schema.save(tmp_path / "s.toml")
    for options in ([], ["--schema", str(tmp_path / "s.toml")]):
        main(["doctor", str(path), *options])
        schema = frozen_lake().schema if options else None
        found = rspmn.examine(str(path), schema)
        assert f"{found}\n" == capsys.readouterr().out


def test_bars_are_for_those_who_look(monkeypatch: pytest.MonkeyPatch) -> None:
    log = frozen_lake().generate(60, 8, 0)
    calls: list[float] = []
    monkeypatch.setattr("rspmn.learn.config.DELAY", 0)
    for terminal, progress, is_shown in (
        (False, None, False), (True, None, True), (True, False, False), (False, True, True),
    ):  # fmt: skip
        stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", lambda terminal=terminal: terminal)
        monkeypatch.setattr(sys, "stderr", stream)
        rspmn.learn_rspmn(log, progress=progress, report=lambda p: calls.append(p.rows_done))
        assert ("learning" in stream.getvalue()) == is_shown
    assert len(calls) > 4
    with progress_bar(None, None) as report:
        assert report is None
