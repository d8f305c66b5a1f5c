"""Explanations on logs of numbers, as people write numbers."""

import re
from functools import cache

import pytest

import rspmn
from number_worlds import corridor
from rspmn import RSPMN
from rspmn.explain.text import as_text
from rspmn.learn import learn_rspmn


@cache
def walk() -> RSPMN:
    log, schema = corridor(60, seed=0)
    return learn_rspmn(rspmn.windows(log, schema, terminated="over"))[0]


def test_boxes_are_ranges_and_steps_are_whole() -> None:
    model = walk()
    found = walk().policy(20, 0.95).explain({"x": 0.57, "attribute": 0.0})
    text = as_text(found)
    assert re.search(r"node \d+: x=0\.\d+ to [01]\.\d+, about \d+ logged steps", text)
    assert (
        "attribute=" not in text.partition("where it is")[2].partition("effect of each variable")[0]
    )
    table = [line for line in text.splitlines() if re.match(r"(a|left|right)  ", line)]
    assert len(table) == 3
    assert len({len(line) for line in table}) == 1, "columns end at the same place"
    assert re.fullmatch(r"right.* \d+", table[1])
    assert model.set_aside == ("attribute",)


def test_the_first_and_last_box_have_no_tails() -> None:
    table = walk().policy(20, 0.95).table()
    low = float(table["x"][0].split(" to ")[0])
    high = float(table["x"][-1].split(" to ")[1])
    assert (low, high) == pytest.approx((0, 1), abs=0.1)
    assert all(text.count(" to ") == 1 for text in table["x"])
