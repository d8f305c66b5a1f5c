"""What decisions are worth, on arrays and node by node."""

import math
from typing import Any

import numpy as np
import pytest

from effort import seeds
from rspmn import Schema
from rspmn.circuit import Categorical, Network, NetworkBuilder, StudentT
from rspmn.data.tables import as_table
from rspmn.errors import EvidenceError
from rspmn.infer import action_values
from rspmn.infer.compiled.decisions import CompiledDecision
from rspmn.infer.evidence import Known
from rspmn.learn import LearnConfig, learn_spmn
from rspmn.spmn import SPMN

SCHEMA = Schema([["x", "c"], ["a"], ["y"], ["b"]], ["a", "b"], "u")


def table(rng: np.random.Generator, rows: int = 150) -> dict[str, Any]:
    x, y = rng.normal(size=(2, rows))
    c = rng.choice(["l", "m", "r"], rows)
    a, b = rng.integers(0, 3, rows), rng.choice(["p", "q"], rows)
    x[rng.random(rows) < 0.1] = np.nan
    u = (x > 0) * (a == 1) + (c == "l") * (a == 2) + (y > 0.3) * (b == "p") + rng.normal(size=rows)
    return {"x": x, "c": c, "a": a, "y": y, "b": b, "u": np.nan_to_num(u)}


def contexts(rng: np.random.Generator, names: list[str], rows: int) -> list[Known]:
    drawn = table(rng, rows)
    cases = [
        {name: drawn[name][k] for name in names if rng.random() < 0.8 or name in ("a", "b")}
        for k in range(rows)
    ]
    return [
        {n: v.item() for n, v in case.items() if v == v}  # NaN is not equal to itself
        for case in cases
    ]


@pytest.mark.parametrize("classes", [0, 3])
@pytest.mark.parametrize("seed", seeds(1, 6))
def test_as_node_by_node(seed: int, classes: int) -> None:
    rng = np.random.default_rng(seed)
    model, _ = learn_spmn(table(rng), SCHEMA, LearnConfig(classes=classes))
    for decision, names in (("a", ["x", "c"]), ("b", ["x", "c", "a", "y"])):
        compiled = CompiledDecision(model.network, decision)
        for known in contexts(rng, names, 4):
            plain = action_values(model.network, known, decision)
            found = compiled(compiled.context(known))
            if not found.possible[0]:
                assert all(answer.available == 0 for answer in plain)
                continue
            mine = {answer.value: answer for answer in found.answers(0, compiled.missing(known))}
            for answer in (*plain, *mine.values()):  # a probability, whatever was rounded
                assert 0.0 <= answer.available <= 1.0
            assert len(mine) == len(plain)
            for answer in plain:
                other = mine[answer.value]
                for field in ("utility", "available", "steps"):
                    expected = getattr(answer, field)
                    assert getattr(other, field) == pytest.approx(expected, rel=1e-9, nan_ok=True)
                # nodes that several parts share are one estimate; node by node they are several
                assert other.error >= answer.error * (1 - 1e-9)
                assert (other.best, other.averaged_over) == (answer.best, answer.averaged_over)


def test_a_table_as_row_by_row() -> None:
    rng = np.random.default_rng(1)
    model, _ = learn_spmn(table(rng), SCHEMA, LearnConfig(classes=3))
    compiled = CompiledDecision(model.network, "b")
    new = table(rng, 40)
    source = as_table({name: new[name] for name in ("x", "c", "a", "y")})
    columns = {name: source.coded(name, model.schema.kinds[name]) for name in source.names}
    found = compiled(compiled.contexts(columns, source.rows))
    for row in range(source.rows):
        cells = {name: new[name][row].item() for name in source.names}
        known = {name: cell for name, cell in cells.items() if cell == cell}
        one = compiled(compiled.context(known))
        np.testing.assert_allclose(found.utility[row], one.utility[0], rtol=1e-9)
        np.testing.assert_allclose(found.log_likelihood[row], one.log_likelihood[0], rtol=1e-9)


def parts() -> Network:
    """Two parts by text, with a number beside: in the second one action is lacking."""
    b = NetworkBuilder()
    near = b.max("a", {0: b.utility("u", 1.0, 10, 4.0), 1: b.utility("u", 3.0, 40, 4.0)})
    far = b.max("a", {0: b.utility("u", 5.0, 20)})
    children = [
        b.product([b.leaf("c", Categorical.certain("l")), b.leaf("x", StudentT(0.0, 1.0)), near]),
        b.product([b.leaf("c", Categorical.certain("r")), b.leaf("x", StudentT(9.0, 1.0)), far]),
    ]
    return b.build(b.sum(children, [0.5, 0.5]))


def test_a_context_that_no_part_has_is_answered_by_those_that_fit_best() -> None:
    model = SPMN(Schema([["c", "x"], ["a"]], ["a"], "u"), parts())
    zero, one = model.action_values({"c": "never seen", "x": 0.0})
    assert (zero.supported, one.supported) == (False, False)
    assert zero.utility == pytest.approx(1.0, abs=0.01)  # x says that it is the first part
    best = model.best_decisions({"c": "never seen", "x": 9.0})
    assert [answer.value for answer in best] == [0]
    assert best[0].utility == pytest.approx(5.0, abs=0.01)
    assert best[0].usual == 0.0


def test_standard_errors() -> None:
    model = SPMN(Schema([["c", "x"], ["a"]], ["a"], "u"), parts())
    zero, one = model.action_values({"c": "l"})
    assert zero.error == pytest.approx(math.sqrt(4 / 10))
    assert one.error == pytest.approx(math.sqrt(4 / 40))


def test_standard_errors_of_several_parts() -> None:
    """The first part is 4 of 5 where x = 0: variances 8/4 and 9/9 by .8² and .2²."""
    b = NetworkBuilder()
    network = b.build(b.sum([
        b.product([b.leaf("x", Categorical((0, 1), (0.8, 0.2))),
                   b.max("a", {"go": b.utility("u", 1.0, 4, 8.0)})]),
        b.product([b.leaf("x", Categorical((0, 1), (0.2, 0.8))),
                   b.max("a", {"go": b.utility("u", 6.0, 9, 9.0)})]),
    ], [0.5, 0.5]))  # fmt: skip
    (plain,) = action_values(network, {"x": 0})
    (compiled,) = SPMN(Schema([["x"], ["a"]], ["a"], "u"), network).action_values({"x": 0})
    for found in (plain, compiled):
        assert found.utility == pytest.approx(0.8 * 1 + 0.2 * 6)
        assert found.error == pytest.approx(math.sqrt(0.64 * 2 + 0.04 * 1))


def test_decisions_of_a_table() -> None:
    model = SPMN(Schema([["c", "x"], ["a"]], ["a"], "u"), parts())
    found = model.decide({"c": ["l", "r", "never seen"], "x": [0.0, 9.0, 9.0]})
    assert found["a"].tolist() == [1, 0, 0]
    np.testing.assert_allclose(found["utility"], [3.0, 5.0, 5.0], atol=0.01)
    assert found["usual"].tolist() == [1.0, 1.0, 0.0]


def test_where_laws_forbid_everything_nothing_is_decided() -> None:
    """l needs x < 1, r needs y < 1: with 1 and 1 neither is allowed."""
    rows = [(0, 0, "l", 1.0), (0, 0, "r", 5.0), (0, 1, "l", 2.0), (1, 0, "r", 4.0)] * 40
    log = dict(zip("xyau", map(list, zip(*rows, strict=True)), strict=True))
    law = {"a": {"l": "x < 1", "r": "y < 1"}}
    model, _ = learn_spmn(log, Schema([["x", "y"], ["a"]], ["a"], "u", available=law))
    found = model.decide({"x": [0, 0, 1, 1], "y": [0, 1, 0, 1]})
    assert found["a"].tolist() == ["r", "l", "r", None]
    assert np.isnan(found["utility"]).tolist() == [False, False, False, True]
    assert np.isnan(found["error"][3])
    with pytest.raises(EvidenceError):
        model.act({"x": 1, "y": 1})
