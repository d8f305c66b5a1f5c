"""What was learned, in words."""

from dataclasses import replace

import pytest

from rspmn.envs.grid_universe import grid_universe
from rspmn.learn import FutureInfo, learn_rspmn
from rspmn.learn.description import _about_successors


def test_it_is_printed() -> None:
    _, info = learn_rspmn(grid_universe().generate(200, 8, 0))
    first, *others = str(info).splitlines()
    assert first == (
        f"{info.interfaces} interface nodes, {info.nodes['final']} nodes in all, from "
        f"{info.steps} steps ({info.windows} distinct)"
    )
    assert any(line.startswith("transitions: ") for line in others)
    info.steps_left_out, info.structure.stopped_by = 7, "nodes"
    assert [line for line in str(info).splitlines() if line not in (first, *others)] == [
        "left out: 7 steps agree with no interface node in which their decisions were made",
        "stopped early: the limit of nodes was reached",
    ]


@pytest.mark.parametrize(
    ("strength", "said"),
    [
        (1.0, "(1 factor, 1 distribution for 2 contexts) with the weight of 1 step per state"),
        (2.5, "(1 factor, 1 distribution for 2 contexts) with the weight of 2.5 steps per state"),
        (11.0, "with more weight than all counts; 5 % of its probability"),
        (0.0, "counts alone; a shared estimate (1 factor, 1 distribution for 2 contexts) predicts"),
    ],
)
def test_the_line_about_successors(strength: float, said: str) -> None:
    info = FutureInfo((("x",),), (1,), 2, strength, outside=0.05)
    (line,) = _about_successors(info, steps=10)
    assert said in line


def test_what_was_cut_is_said() -> None:
    cut = FutureInfo((("x",),), (1,), 2, 1.0, cut=0.0305)
    (line,) = _about_successors(cut, steps=10)
    assert line.endswith("; 3 % was cut: that of the least probable states")
    (line,) = _about_successors(replace(cut, cut=1e-7), steps=10)
    assert "cut" not in line
    _, info = learn_rspmn(grid_universe().generate(200, 8, 0))
    info.beyond, info.all_beyond, info.cut_beyond = 3, False, 0.021
    (line,) = (line for line in str(info).splitlines() if line.startswith("beyond the log"))
    assert line.endswith("; others were left out; 2.1 % of what may follow was not examined")
    info.beyond = 0
    (line,) = (line for line in str(info).splitlines() if line.startswith("beyond the log"))
    assert "2.1 % of what may follow was not examined: there are too many" in line
