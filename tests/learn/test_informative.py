"""Variables whose absence tells something: "crp is missing" is one more variable."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rspmn
from rspmn import Episodes, Schema
from rspmn.errors import SchemaError
from rspmn.learn import LearnConfig, learn_rspmn, learn_spmn, refit

ORDER: dict[str, Any] = {
    "order": [["crp", "age"], ["treat"]],
    "decisions": ["treat"],
    "utility": "u",
}


def ward(kind: str, steps: int = 3000) -> dict[str, list[Any]]:
    """Return single decisions. Of the healthy no CRP is taken: not to treat them earns 2.

    Of the others it is low or high: to treat earns 1 where it is high, else not to treat does.
    """
    rng = np.random.default_rng(0)
    sick = rng.random(steps) < 0.6
    high = rng.random(steps) < 0.5
    treat = rng.random(steps) < 0.5
    number = np.where(high, 60.0, 10.0) + rng.normal(0, 8, steps).round(2)
    crp = {"continuous": number, "categorical": np.where(high, "high", "low"),
           "integer": np.where(high, 3, 1)}[kind]  # fmt: skip
    u = np.where(sick, treat == high, 2.0 * ~treat)
    return {
        "episode": list(range(steps)), "time": [0] * steps,
        "crp": [value if s else None for value, s in zip(crp.tolist(), sick, strict=True)],
        "age": rng.integers(3, size=steps).tolist(),
        "treat": treat.tolist(), "u": u.astype(float).tolist(),
    }  # fmt: skip


STATES = {"continuous": (62.0, 9.0), "categorical": ("high", "low"), "integer": (3, 1)}


@pytest.mark.parametrize("kind", list(STATES))
@pytest.mark.parametrize("numbers", ["soft", "intervals"])
def test_absence_that_tells(kind: str, numbers: Any, tmp_path: Path) -> None:
    """Without a CRP 2 can be earned, with one 1; nobody who does not know it would promise that."""
    schema = Schema(**ORDER, missing={"crp": "informative"})
    log = Episodes.from_long(ward(kind), schema, ending="end")
    model, info = learn_rspmn(log, LearnConfig(numbers=numbers))
    assert info.steps_left_out == 0
    model.save(tmp_path / "ward.json")
    loaded = rspmn.load(tmp_path / "ward.json")
    high, low = STATES[kind]
    for found in (model, loaded, refit(model, log, LearnConfig(numbers=numbers))[0]):
        assert isinstance(found, rspmn.RSPMN)
        for absent in ({}, {"crp": None}, {"crp is missing": True}):
            assert found.act({"age": 1, **absent}, horizon=1) is False
            assert found.action_values({"age": 1, **absent}, 1)[0].averaged_over == ()
            assert found.meu({"age": 1, **absent}, horizon=1) == pytest.approx(2, abs=0.1)
        assert found.act({"age": 1, "crp": high}, horizon=1) is True
        assert found.act({"age": 1, "crp": low}, horizon=1) is False
        best = max(each.utility for each in found.action_values({"crp": high}, 1))
        assert found.meu({"crp": high}, horizon=1) == pytest.approx(best)
        if (kind, numbers) != ("continuous", "soft"):  # else actions are interpolated from knots
            assert best == pytest.approx(1, abs=0.1)
    many = model.policy(horizon=1).act_many({"crp": [high, None], "age": [1, 1]})
    assert list(many) == [True, False]
    # whether it was taken may stay open: .4 · 2 + .6 · 1
    assert model.meu({"crp is missing": None}, 1) == pytest.approx(1.4, abs=0.1)


def test_the_absence_of_another_variable_tells_nothing() -> None:
    """To do what the age says earns 10; not to treat earns 1 more if CRP is low, 2 if it is high.

    Of half of the rows CRP is missing. Where the age is, the state is not known: these are left
    out. To treat one age earns 10; not to treat the other earns 10 + (1/4 · 1 + 1/4 · 2).
    """
    rows = [
        (crp, None if gone else age, treat, 10.0 * (treat == age) + (0 if treat else more))
        for gone in (True, False, False, False)
        for treat in (0, 1)
        for age in (0, 1)
        for crp, more in (("low", 1), ("high", 2), (None, 0), (None, 0))
        for _ in range(15)
    ]
    table = dict(zip(("crp", "age", "treat", "u"), map(list, zip(*rows, strict=True)), strict=True))
    model, _ = learn_spmn(table, Schema(**ORDER, missing={"crp": "informative"}))
    assert model.meu() == pytest.approx((10 + 10.75) / 2)


def test_declared_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(
        'order = [["crp", "age"], ["treat"]]\ndecisions = ["treat"]\nutility = "u"\n'
        '[missing]\ncrp = "informative"\n[log]\nending = "end"\n'
    )
    schema = Schema.load(path)
    assert schema.information_sets[0] == ("crp", "age", "crp is missing")
    assert schema.informative == {"crp": "crp is missing"}
    schema.save(path)
    assert Schema.load(path) == schema
    table = ward("categorical", 300)
    lines = [
        ",".join("" if v is None else str(v) for v in row)
        for row in zip(*table.values(), strict=True)
    ]
    (tmp_path / "ward.csv").write_text("\n".join([",".join(table), *lines]))
    model, _ = learn_rspmn(rspmn.windows(tmp_path / "ward.csv", schema))
    assert model.act({"age": 1}, horizon=1) is False


def test_what_cannot_be_declared() -> None:
    with pytest.raises(SchemaError, match="unknown variable 'cpr'.*crp"):
        Schema(**ORDER, missing={"cpr": "informative"})
    with pytest.raises(SchemaError, match="expected 'informative'"):
        Schema(**ORDER, missing={"crp": "random"})
