"""The doctor asks whether what was never done is a law or a habit."""

import tomllib

import numpy as np

from rspmn import Schema, examine
from rspmn.doctor.law_or_habit import law_line

SCHEMA = Schema([["floor", "ward"], ["a"]], ["a"], "u").with_log(terminated="over")


def table(rng: np.random.Generator) -> dict[str, list[object]]:
    """Return steps of one episode each: nobody takes the lift on floor 0, nor in ward b."""
    rows: list[tuple[object, ...]] = []
    for episode in range(900):
        floor, ward = int(rng.integers(3)), str(rng.choice(["a", "b"]))
        takes = floor > 0 and ward == "a" and rng.random() < 0.5
        rows.append((episode, 0, floor, ward, "lift" if takes else "wait", 1.0 + takes, False))
        rows.append((episode, 1, max(0, floor - takes), str(rng.choice(["a", "b"])), None, None,
                     False))  # fmt: skip
    names = "episode", "time", "floor", "ward", "a", "u", "over"
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def test_habits_and_laws_are_asked_about() -> None:
    found = examine(table(np.random.default_rng(0)), SCHEMA).findings
    floor, ward = (f for f in found if f.about == "availability")
    assert "never taken when floor = 0" in floor.found
    assert floor.advice.endswith("If an action is impossible there, declare it")
    assert (floor.table, floor.line) == ("available", 'lift = "floor != 0"')
    assert "never taken when ward = b" in ward.found
    (habit,) = (f for f in found if f.about == "not compared")
    assert habit.found.startswith("decisions depended on 'ward' so much")
    assert habit.advice.endswith("learn with --ignore ward")


def test_the_line_can_be_written_into_the_schema() -> None:
    lines = [law_line("lift", "floor", [0]), law_line("no lift", "my ward", ["a", "b"]),
             law_line(True, "x", [1, 2])]  # fmt: skip
    read = tomllib.loads("\n".join(lines))
    assert read == {
        "lift": "floor != 0",
        "no lift": "`my ward` not in ('a', 'b')",
        "true": "x not in (1, 2)",
    }
    schema = Schema([["floor", "my ward", "x"], ["a"]], ["a"], "u", available=read)
    assert [law.variables for law in schema.laws] == [("floor",), ("my ward",), ("x",)]
    log = table(np.random.default_rng(0))
    lawful = Schema(SCHEMA.order, ["a"], "u", None, SCHEMA.log, {"lift": "floor != 0"})
    abouts = [f.about for f in examine(log, lawful).findings]
    assert "availability" not in abouts  # it is settled
    assert "error" not in [f.level for f in examine(log, lawful).findings]
    broken = Schema(SCHEMA.order, ["a"], "u", None, SCHEMA.log, {"lift": "floor == 0"})
    assert examine(log, broken).findings[0].level == "error"


def test_a_log_without_habits_is_not_asked_about() -> None:
    log = table(np.random.default_rng(0))
    log["a"] = [None if a is None else "lift" if k % 4 else "wait" for k, a in enumerate(log["a"])]
    findings = examine(log, SCHEMA).findings
    assert not {"habit", "availability"} & {f.about for f in findings}
