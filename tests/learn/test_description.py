"""What was learned, in words."""

from dataclasses import replace

import pytest

from rspmn.envs.grid_universe import grid_universe
from rspmn.learn import FutureInfo, learn_rspmn
from rspmn.learn.description import _about_successors
from rspmn.learn.em import EMInfo
from rspmn.learn.large_log import SampleInfo


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


@pytest.mark.parametrize(
    ("field", "number", "said"),
    [
        ("lacking", {"x": 70}, "missing values: x 4.4% of 1600 steps"),
        ("steps_completed", 7, "imputed: missing values of 7 steps or their successors were drawn"),
        ("steps_shared", 8, "shared: 8 steps with missing values are divided among"),
        ("steps_doubtful", 9, "ambiguous: the transitions of 9 steps with missing values"),
        ("unsupported_branches", 3, "unsupported: 3 decisions were only made in steps with an"),
        ("frontier_states", 2, "frontier: 2 states have no decision with a known successor"),
        ("each_state", "too few steps", "each state is an interface node: too few steps"),
        ("untried_branches", 5, "untried: 5 decisions were left out in their state by chance"),
        (
            "avoided_branches",
            41,
            "not offered: 41 decisions were never made in their state, by chance or",
        ),
        (
            "sample",
            SampleInfo(steps=4000, share=0.25),
            "sampled: the structure was learned from 25.00%",
        ),
        ("em", EMInfo([-1.5, -1.25]), "EM: log-likelihood -1.5, -1.25"),
    ],
)
def test_each_caution_has_its_line(field: str, number: object, said: str) -> None:
    _, info = learn_rspmn(grid_universe().generate(200, 8, 0))
    before = str(info).splitlines()
    info.steps = 1600
    setattr(info, field, number)
    new = [line for line in str(info).splitlines()[1:] if line not in before]
    assert len(new) == 1, new
    assert new[0].startswith(said)
