"""Messages of errors: one line, and short, whatever names and values are quoted in them."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rspmn
from rspmn import RSPMN, Episodes, Schema
from rspmn.circuit import Categorical, NetworkBuilder
from rspmn.envs.paper_grid import paper_grid
from rspmn.errors import LONGEST, MissingExtraError, RspmnError, did_you_mean, one_line
from rspmn.expressions import Expression

LONG = "x" * 10_000
SCHEMA = Schema([["x"], ["a"]], ["a"], "u")
TABLE: dict[str, list[Any]] = {"episode": [0], "time": [0], "x": [0], "a": ["l"], "u": [1.0]}
GOLDEN = Path(__file__).parent / "golden" / "grid_v1.json"


def edited(tmp_path: Path, **parts: object) -> Path:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(json.loads(GOLDEN.read_bytes()) | parts))
    return path


CAUSES: dict[str, Callable[[Path], object]] = {
    "a column that is not there": lambda _: rspmn.windows(
        TABLE, Schema([[LONG], ["a"]], ["a"], "u"), ending="end"
    ),
    "many columns": lambda _: rspmn.windows(
        TABLE | {f"{k} is a column": [0] for k in range(500)},
        Schema([["y"], ["a"]], ["a"], "u"),
        ending="end",
    ),
    "a column of a name twice": lambda _: Schema([[LONG, LONG], ["a"]], ["a"], "u"),
    "a value of the wrong type": lambda _: Episodes.from_long(
        TABLE | {"u": [LONG]}, SCHEMA, ending="end"
    ),
    "a value in a state": lambda _: paper_grid().act({"x": LONG, "y": 0}, 2),
    "a variable in a state": lambda _: paper_grid().act({LONG: 0}, 2),
    "a state that was never seen": lambda _: paper_grid().act({"x": 10**4000, "y": 0}, 2),
    "a decision that is forbidden": lambda _: paper_grid().policy(2, forbid=[LONG]),
    "a decision that is none": lambda _: SCHEMA.known_before(LONG),
    "what to do otherwise": lambda _: paper_grid().policy(2, otherwise={LONG: LONG}),
    "a path to read": lambda _: rspmn.load(LONG),
    "a path to write": lambda _: paper_grid().save(f"/no/{LONG}.json"),
    "a path with odd characters": lambda _: rspmn.load("/no\n\x1b[31m\u202e/a.json"),
    "a schema's path": lambda _: Schema.load(f"/no/{LONG}"),
    "a log's path": lambda _: rspmn.windows(f"/no/{LONG}.csv", SCHEMA),
    "a key of a file": lambda to: rspmn.load(edited(to, **{LONG: 1})),
    "a kind of model": lambda to: rspmn.load(edited(to, kind=LONG)),
    "a list of a file": lambda to: rspmn.load(edited(to, visits=[1e300, *range(5000)])),
    "a utility of a file": lambda to: rspmn.load(edited(to, version=[LONG])),
    "an expression": lambda _: Expression.parse("(" * 5000),
    "values of a leaf": lambda _: Categorical((LONG, LONG), (0.5, 0.5)),
    "a decision of a node": lambda _: NetworkBuilder().max(LONG, {}),
    "a node's scope": lambda _: RSPMN(
        Schema([[LONG], ["a"]], ["a"], "u"), paper_grid().top, paper_grid().template
    ),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_refusals_are_short(cause: str, tmp_path: Path) -> None:
    with pytest.raises(RspmnError) as caught:
        CAUSES[cause](tmp_path)
    text = str(caught.value)
    assert 20 <= len(text) <= LONGEST
    assert text.isprintable()


def test_what_is_quoted_is_shortened_and_the_rest_is_kept() -> None:
    text = one_line(f"no column {LONG!r} in the table: did you mean {'y' * 400!r}?")
    assert text.startswith("no column 'xxx")
    assert " in the table: did you mean 'yyy" in text
    assert text.endswith("yyy'?")
    assert one_line(text) == text
    plain = "RSPMN: the template's roots " + ", ".join(map(str, range(200))) + ": give fewer"
    assert one_line(plain).startswith("RSPMN: the template's roots 0, 1")
    assert one_line(plain).endswith(": give fewer")
    assert len(one_line("\n" * 10_000)) == LONGEST


def test_errors_are_copied_whole() -> None:
    for kind in (RspmnError, MissingExtraError):
        error = kind(LONG)
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert str(RspmnError()) == ""


def test_a_long_word_is_near_to_none() -> None:
    """Looking for a near word would take seconds."""
    assert did_you_mean(LONG, ["x", LONG + "y"]).startswith("expected one of 'x'")
