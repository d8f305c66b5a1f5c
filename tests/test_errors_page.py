"""docs/errors.md: every message on the page is one that users can meet."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rspmn
from rspmn.circuit import Categorical, NetworkBuilder
from rspmn.end_nodes import weighted_top
from rspmn.envs.paper_grid import paper_grid

PAGE = Path(__file__).parents[1].joinpath("docs", "errors.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^\*\*`(.*)`\*\*$", PAGE, re.M)
SCHEMA = rspmn.Schema([["x"], ["a"]], ["a"], "u")


def read(ending: str | None = "end", **changes: list[Any]) -> object:
    """Read a log of one episode, some of its columns changed."""
    table = {"episode": [7, 7, 7], "time": [0, 1, 2], "x": [0, 1, 0], "a": ["l", "r", "l"],
             "u": [1.0, 0.0, 2.0]} | changes  # fmt: skip
    kept = {name: column for name, column in table.items() if column}
    options: dict[str, Any] = {} if ending is None else {"ending": ending}
    return rspmn.windows(kept, SCHEMA, **options)


def an_incomplete_sum() -> object:
    builder = NetworkBuilder()
    of_x, of_y = (builder.leaf(name, Categorical.certain(0)) for name in ("x", "y"))
    network = builder.build(builder.sum([of_x, of_y], [0.5, 0.5]))
    return rspmn.RSPMN(SCHEMA, weighted_top([1.0]), network)


CAUSES: dict[str, Callable[[], object]] = {
    "the table does not say why episodes ended": lambda: read(ending=None),
    "no episode column 'episode' in the table": lambda: read(episode=[], e=[7, 7, 7]),
    "steps are missing": lambda: read(time=[0, 1, 5]),
    "duplicate time": lambda: read(time=[0, 1, 1]),
    "terminated, but the episode goes on after it": lambda: read(
        ending=None, terminated=[False, True, False]
    ),
    "only state variables may be": lambda: read(u=[1.0, None, 2.0]),
    "without a horizon the values have no limit": lambda: paper_grid().meu(),
    "is not sum-complete (Def. 2)": an_incomplete_sum,
}


def test_every_message_has_a_cause() -> None:
    assert set(SHOWN) == {*CAUSES, "unsupported"}
    assert repr(paper_grid().meu({"x": 7, "y": 0}, horizon=4)) == "nan (unsupported)"


@pytest.mark.parametrize("message", CAUSES)
def test_the_message_is_raised(message: str) -> None:
    with pytest.raises(rspmn.RspmnError, match=re.escape(message)):
        CAUSES[message]()


def test_every_class_is_listed() -> None:
    named = set(re.findall(r"`(?:rspmn.)?(\w+Error)`", PAGE))
    assert named == {name for name in vars(rspmn.errors) if name.endswith("Error")}
