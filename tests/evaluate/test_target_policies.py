"""Targets: all forms of a policy say the same, and what they do not say is known."""

from pathlib import Path

import numpy as np
import pytest

from rspmn import RSPMN, Episodes, Schema, learn_rspmn
from rspmn.errors import DataError, EvidenceError
from rspmn.evaluate import Mixture, Planned, Practice, Target, Uniform, as_target
from rspmn.evaluate.behaviour import estimated_behaviour, given_behaviour
from rspmn.evaluate.logged import LoggedSteps, logged_steps
from rspmn.evaluate.target_policies import AskedStates
from rspmn.infer.policy import Policy
from rspmn.types import Array

SCHEMA = Schema([["x", "g"], ["a"]], ["a"], "u")


def log() -> Episodes:
    """Return twelve episodes of two steps: x is 0, then 1; g is a or b; a is l, l or r."""
    rows = [(e, t, t, "ab"[e % 2], "llr"[(e + t) % 3]) for e in range(12) for t in (0, 1)]
    names = ("episode", "time", "x", "g", "a")
    table = {name: [row[k] for row in rows] for k, name in enumerate(names)}
    return Episodes.from_long(
        {**table, "u": [float(r[4] == "r") for r in rows]}, SCHEMA, ending="end"
    )


MODEL: RSPMN = learn_rspmn(log())[0]
STEPS: LoggedSteps = logged_steps(MODEL, log())
ASKED = AskedStates(STEPS.situations, estimated_behaviour(STEPS))


def recommended() -> Policy:
    return MODEL.policy(2)


def shares(source: object, t: int = 0) -> dict[tuple[object, ...], float]:
    """Return the probability of r in each state."""
    found = as_target(source, recommended).probabilities(ASKED, t)
    column = STEPS.situations.number[("r",)]
    states = (tuple(state.values()) for state in STEPS.situations.known)
    return dict(zip(states, found[:, column].tolist(), strict=True))


def test_one_policy_in_all_its_forms(tmp_path: Path) -> None:
    """r where x is 1 and g is b, else l."""
    expected = {(0, "a"): 0.0, (0, "b"): 0.0, (1, "a"): 0.0, (1, "b"): 1.0}
    rules = {"x": [1, None], "g": ["b", None], "a": ["r", "l"]}
    file = tmp_path / "rules.csv"
    file.write_text("x,g,a\n1,b,r\n,,l\n", encoding="utf-8")
    conditions = tmp_path / "conditions.csv"
    conditions.write_text("g,x,a\nb,> 0.5,r\n,<=1,l\n", encoding="utf-8")
    forms = [
        lambda s: "r" if s["x"] == 1 and s["g"] == "b" else "l",
        lambda s: {"r": 1.0} if s["x"] == 1 and s["g"] == "b" else {"l": 1.0, "r": 0.0},
        lambda s: {"a": "r" if s["x"] == 1 and s["g"] == "b" else "l"},
        {(0, "a"): "l", (0, "b"): "l", (1, "a"): {"l": 1.0}, (1, "b"): "r"},
        rules, file, str(file), conditions,
    ]  # fmt: skip
    for form in forms:
        assert shares(form) == expected


def test_tables_of_pandas_and_numbers_as_text(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1.0, float("nan")], "a": ["r", "l"]})
    file = tmp_path / "rules.csv"
    file.write_text("x, a\n1.0, r\n, l\n", encoding="utf-8")
    for form in (frame, file):
        assert shares(form) == {(x, g): float(x) for x in (0, 1) for g in "ab"}


def test_named_targets() -> None:
    assert set(shares("uniform").values()) == {0.5}
    practice = shares("practice")
    counts = STEPS.counts
    number = STEPS.situations.number[("r",)]
    of_node = counts.sum(axis=0) / counts.sum()
    assert set(practice.values()) <= {*(counts[:, number] / counts.sum(axis=1)), of_node[number]}
    assert set(shares("recommended").values()) == {1.0}
    assert shares(recommended()) == shares("recommended")


def test_mixtures() -> None:
    mixture = Mixture(Planned(recommended()), Uniform(), 0.5)
    assert isinstance(mixture, Target)
    assert set(shares(mixture).values()) == {0.75}
    assert not mixture.stationary
    assert Mixture(Practice(), Uniform(), 0.1).stationary
    with pytest.raises(EvidenceError, match="from 0 to 1, found 1.5"):
        Mixture(Practice(), Uniform(), 1.5)


def test_a_policy_may_depend_on_time() -> None:
    class Alternates:
        stationary = False

        def probabilities(self, asked: AskedStates, t: int) -> Array:
            return np.full((asked.situations.count, 2), [1.0, 0.0] if t % 2 else [0.0, 1.0])

    assert shares(Alternates(), 0) != shares(Alternates(), 1)


def test_what_nobody_knows_is_no_probability() -> None:
    """An action that log and model lack has a mass that is missing; no rule is a row of NaN."""
    found = as_target(lambda _: {"jump": 0.25, "l": 0.75}, recommended).probabilities(ASKED, 0)
    assert found.sum(axis=1).tolist() == [0.75] * 4
    found = as_target({(0, "a"): "l"}, recommended).probabilities(ASKED, 0)
    assert np.isnan(found).any(axis=1).tolist() == [False, True, True, True]
    found = as_target({"x": [1], "a": ["fly"]}, recommended).probabilities(ASKED, 0)
    assert np.isnan(found).any(axis=1).sum() == 2
    assert np.nansum(found) == 0


def test_states_that_a_policy_never_saw() -> None:
    table = {"episode": [0], "time": [0], "x": [0], "g": ["a"], "a": ["l"], "u": [1.0]}
    small, _ = learn_rspmn(Episodes.from_long(table, SCHEMA, ending="end"))
    found = Planned(small.policy(1)).probabilities(ASKED, 0)
    states = [tuple(state.values()) for state in STEPS.situations.known]
    seen = [states[k] for k in np.flatnonzero(~np.isnan(found).any(axis=1))]
    assert (0, "a") in seen


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("unifrm", "unifrm.*uniform.*or the name of a .csv file"),
        (3, "expected a function, a mapping.*found int"),
        (lambda _: {"l": 0.5, "r": 0.6}, "sum to 1 in the state"),
        (lambda _: ("l", "r"), "expected values for"),
        ({"y": [1], "a": ["l"]}, "column 'y'"),
        ({"x": [1]}, "no column 'a'"),
        ({"x": [1, 2], "a": ["l", None]}, "rule 2 has no 'a'"),
        ("nowhere.csv", "nowhere.csv: cannot be read"),
    ],
)
def test_what_is_no_policy_is_refused(source: object, message: str) -> None:
    with pytest.raises((EvidenceError, DataError), match=message):
        shares(source)


@pytest.mark.parametrize(
    ("text", "message"), [("x,a\n", "at least one rule"), ("x,a\n1\n", "row 2 has 1")]
)
def test_odd_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "rules.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        shares(file)


# ---- the policy of the log ----------------------------------------------------------------


def test_behaviour_is_shares_by_state_or_by_node() -> None:
    """States that the log saw once say nothing of their own: their node's shares are theirs."""
    rng = np.random.default_rng(0)
    rows = 200
    made = np.array(["l", "r"])[(rng.random(rows) < 0.3).astype(int)]
    table = {"episode": range(rows), "time": [0] * rows, "x": rng.permutation(rows),
             "g": ["a"] * rows, "a": made, "u": [0.0] * rows}  # fmt: skip
    log = Episodes.from_long({n: np.array(c) for n, c in table.items()}, SCHEMA, ending="end")
    steps = logged_steps(learn_rspmn(log)[0], log)
    found = estimated_behaviour(steps)
    assert steps.situations.count == rows
    assert (steps.situations.places.in_groups(np.ones(rows)) > 0).sum() == 1
    assert np.allclose(found, steps.counts.mean(axis=0))


def test_behaviour_of_numbers_is_a_tree() -> None:
    """The log takes r with .9 where x > 0.25, else with .2; no state is seen twice."""
    rng = np.random.default_rng(0)
    rows = 400
    x = rng.normal(size=rows)
    truth = np.where(x > 0.25, 0.9, 0.2)
    made = np.array(["l", "r"])[(rng.random(rows) < truth).astype(int)]
    table = {"episode": np.arange(rows), "time": np.zeros(rows, int), "x": x,
             "g": np.array(["a", "b"])[rng.integers(0, 2, rows)], "a": made, "u": x}  # fmt: skip
    log = Episodes.from_long(table, SCHEMA, ending="end")
    steps = logged_steps(learn_rspmn(log)[0], log)
    found = estimated_behaviour(steps)[steps.state, steps.situations.number[("r",)]]
    assert len(np.unique(found)) == 2
    assert np.abs(found - truth).mean() < 0.05


def test_probabilities_of_a_log_must_be_possible() -> None:
    given = np.full(24, 0.5)
    assert given_behaviour(STEPS, given).tolist() == given.tolist()
    for odd in (0.0, -0.1, 1.2, np.nan):
        with pytest.raises(DataError, match="in episode 1, step 0 .1 such decisions.*estimated"):
            given_behaviour(STEPS, np.where(np.arange(24) == 2, odd, given))
    with pytest.raises(DataError, match="each of 24 steps, found an array of shape"):
        given_behaviour(STEPS, given[:3])


@pytest.mark.parametrize(
    ("yes", "one", "name"),
    [("true", "1", " A"), ("TRUE", "1.0", "A"), ("True", "1", " A "), ("1", "01", " A")],
)
def test_cells_of_rules_are_read_as_those_of_logs(
    yes: str, one: str, name: str, tmp_path: Path
) -> None:
    """Booleans, integers and names as CSV may write them, as states and as decisions."""
    rows = [(e, 0, e % 2 == 0, " A" if e % 3 else "B", e % 4 < 2, 1 + e % 2) for e in range(48)]
    names = ("episode", "time", "hot", "site", "fan", "level")
    table: dict[str, object] = {key: [row[k] for row in rows] for k, key in enumerate(names)}
    table["u"] = [float(row[2] == row[4]) for row in rows]
    schema = Schema([["hot", "site"], ["fan"], ["level"]], ["fan", "level"], "u")
    log = Episodes.from_long(table, schema, ending="end")
    model = learn_rspmn(log)[0]
    file = tmp_path / "rules.csv"
    file.write_text(f"hot,site,fan,level\n{yes},{name},{yes},{one}\n,,false,2\n", encoding="utf-8")
    steps = logged_steps(model, log)
    asked = AskedStates(steps.situations, estimated_behaviour(steps))

    def by_hand(state: dict[str, object]) -> tuple[bool, int]:
        return (True, 1) if state["hot"] and state["site"] == " A" else (False, 2)

    found, expected = (
        as_target(source, model.policy(1).__class__).probabilities(asked, 0)
        for source in (str(file), by_hand)
    )
    assert (found == expected).all()
