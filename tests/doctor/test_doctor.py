"""The doctor: it finds what was put in, and does not complain of what is well."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from rspmn import Episodes, Followed, Kind, Schema
from rspmn.cli import main
from rspmn.data.sources.column_stats import survey
from rspmn.data.sources.open import open_source
from rspmn.doctor import examine, propose, survey_log
from rspmn.doctor.markov import ALPHA, markov_test
from rspmn.envs.domains import DOMAINS
from rspmn.errors import DataError

SCHEMA = Schema([["x"], ["a"]], ["a"], "u")


def walk(episodes: int = 300, steps: int = 10, seed: int = 0) -> dict[str, list[Any]]:
    """Draw a walk over five places; going left costs, and never ends."""
    rng = np.random.default_rng(seed)
    table: dict[str, list[Any]] = {name: [] for name in ("episode", "time", "x", "a", "u")}
    for episode in range(episodes):
        x = int(rng.integers(5))
        for t in range(steps):
            a = str(rng.choice(["left", "right"]))
            for name, value in zip(table, (episode, t, x, a, 0.5 * (x == 4)), strict=True):
                table[name].append(value)
            x = int(np.clip(x + (1 if a == "right" else -1) * (rng.random() < 0.8), 0, 4))
    return table


def abouts(table: dict[str, list[Any]], schema: Schema = SCHEMA, **options: Any) -> set[str]:
    found = examine(pl.DataFrame(table), schema, ending="cut", **options)
    return {finding.about for finding in found.findings}


def test_a_log_that_is_well() -> None:
    log = DOMAINS["FrozenLake"]().generate(4000, 8, 0, "final")
    found = examine(log.to_long(), log.schema, terminated="terminated")
    assert found.findings == []
    assert found.is_sound
    assert (found.episodes, found.steps) == (len(log), log.num_steps)
    assert found.lengths["longest"] == 8
    assert found.lengths["shortest"] == log.lengths.min()
    assert found.lengths["median"] == np.median(log.lengths)
    assert found.endings["terminated"] + found.endings["truncated with a final state"] == 4000
    assert found.coverage is not None
    assert found.coverage.pairs == found.coverage.states * 4
    assert found.coverage.steps_in_fully_tried == 1.0
    assert sum(found.balance["action"].values()) == log.num_steps
    assert found.markov is not None
    assert found.markov.steps == np.maximum(log.lengths - 2, 0).sum()


@pytest.mark.parametrize("name", ["Maze", "Taxi", "CrossingTraffic", "Elevators", "SkillTeaching"])
def test_markov_processes_pass(name: str) -> None:
    found = markov_test(DOMAINS[name]().generate(1500, 10, 3))
    assert found.dependences == ()
    assert found.tests > 0


@pytest.mark.parametrize("informed", [True, False])
def test_decisions_made_by_what_the_state_lacks(informed: bool) -> None:
    """The severe are treated more often, and earn less; the log does not have who is severe."""
    rng = np.random.default_rng(0)
    severe = np.repeat(rng.random(400) < 0.5, 8)
    treat = rng.random(3_200) < np.where(severe & informed, 0.9, 0.3)
    earned = (rng.random(3_200) < np.where(severe, 0.2, 0.8) + 0.1 * treat).astype(float)
    table = {
        "episode": np.repeat(np.arange(400), 8), "time": np.tile(np.arange(8), 400),
        "x": rng.integers(0, 2, 3_200), "treat": treat, "u": earned,
    }  # fmt: skip
    log = Episodes.from_long(table, Schema([["x"], ["treat"]], ["treat"], "u"), ending="cut")
    found = markov_test(log)
    assert ("u", "u") in [each[:2] for each in found.dependences]
    assert {reason for reason, _ in found.reasons} == ({"treat", "u"} if informed else set())
    said = [each.about for each in found.findings]
    assert (said[0] == "confounding") is informed


def test_how_often_a_markov_process_is_complained_of() -> None:
    """At most ALPHA by design; 60 logs: more than 4 would happen once in 2,000 such tests."""
    log = DOMAINS["FrozenLake"]()
    found = [markov_test(log.generate(300, 8, seed)) for seed in range(60)]
    complaints = sum(bool(one.dependences) for one in found)
    assert ALPHA == 0.01
    assert complaints <= 4


def test_a_hidden_direction_is_found() -> None:
    """A thing that keeps its direction: where it was before tells where it will be."""
    rng = np.random.default_rng(0)
    steps = []
    for _ in range(400):
        x, way = int(rng.integers(6)), int(rng.choice([-1, 1]))
        episode = []
        for _ in range(8):
            episode.append({"x": x, "a": str(rng.choice(["l", "r"])), "u": 0.0 + (x == 0)})
            x = (x + way) % 6
        steps.append(episode)
    log = Episodes.from_steps(steps, SCHEMA, [Followed.UNKNOWN] * len(steps))
    found = markov_test(log)
    assert ("x", "x") in {(before, after) for before, after, *_ in found.dependences}
    assert found.dependences[0][3] > 0.9  # it is all that is open
    assert "add 'x' of the previous step" in found.findings[0].advice


def stays(episodes: int, *, missing: float = 0.0, returns: float = 0.0) -> Episodes:
    """Return steps of a thing that stays in nine of ten steps, else goes anywhere of four places.

    `missing`: the share of places that are not logged. `returns`: how often, in places 0 and 2, it
    goes on if it was there before, too.
    """
    rng, steps = np.random.default_rng(0), []
    for _ in range(episodes):
        before = x = int(rng.integers(4))
        episode: list[dict[str, Any]] = []
        for _ in range(10):
            place = None if rng.random() < missing else x
            episode.append({"x": place, "a": str(rng.choice(["l", "r"])), "u": float(x == 0)})
            goes = rng.random() < 0.1 or (before % 2 == 0 and rng.random() < returns)
            before, x = x, int(rng.integers(4)) if goes else x
        steps.append(episode)
    return Episodes.from_steps(steps, SCHEMA, [Followed.UNKNOWN] * len(steps))


def test_what_is_missing_hides_no_cause() -> None:
    """Where a place is not logged the one before tells it: that is no fault of the state."""
    log = stays(1000, missing=0.1)
    found = markov_test(log)
    assert found.dependences == ()
    place = ~log.columns["x"].missing.reshape(1000, 10)
    assert found.steps == (place[:, :-2] & place[:, 1:-1] & place[:, 2:]).sum()
    nothing = markov_test(stays(20, missing=1.0))
    assert nothing.not_tested == "no episode has three steps with nothing missing"


def test_a_dependence_that_explains_next_to_nothing_is_no_alarm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a large log the least is significant: here p is below 1e-5, and 0.5 % is explained."""
    log = stays(3000, returns=0.1)
    assert markov_test(log).dependences == ()
    monkeypatch.setattr("rspmn.doctor.markov.LEAST_SHARE", 0.0)
    _, _, p, share = markov_test(log).dependences[0]
    assert p < 1e-5
    assert 0 < share < 0.01


def test_every_fault_is_found() -> None:
    table = walk()
    rows = len(table["x"])
    assert abouts(table) == {"successors"}  # one step in ten has no successor
    assert "missing" in abouts(table | {"x": [None if k % 7 == 0 else x for k, x in
                                              enumerate(table["x"])]})  # fmt: skip
    more = Schema([["x", "z"], ["a"]], ["a"], "u")
    assert "constant" in abouts(table | {"z": [1] * rows}, more)
    assert "identifier" in abouts(table | {"z": [f"id{k}" for k in range(rows)]}, more)
    assert "cardinality" in abouts(table | {"z": [k % 700 for k in range(rows)]}, more)
    assert "leak" in abouts(table | {"z": table["u"]}, more)
    after = [*table["x"][1:], 0]
    assert "leak" in abouts(table | {"z": after}, more)
    assert "decisions" in abouts(table | {"a": ["left"] * rows})
    assert "utility" in abouts(table | {"u": [1.0] * rows})
    assert "balance" in abouts(table | {"a": ["up" if k == 3 else "left" for k in range(rows)]})
    assert "coverage" in abouts(table | {"a": ["l" if x else "r" for x in table["x"]]})
    assert "unused" in abouts(table | {"note": ["n"] * rows})


def test_a_utility_that_is_constant() -> None:
    """Of each step the same: how long episodes last is all that counts. Of each end: 0 before."""
    table, rows = walk(30), 300

    def said(utility: list[Any]) -> list[tuple[str, str]]:
        found = examine(pl.DataFrame(table | {"u": utility}), SCHEMA, ending="cut").findings
        return [(f.level, f.advice[:30]) for f in found if f.about == "utility"]

    assert said([0.0] * rows) == [("warning", "All policies would have the sa")]
    assert said([-1.0] * rows) == [("note", "Policies differ in value only ")]
    assert said([1.0, *[None] * 9] * 30) == [("warning", "If nothing was earned there, c")]


def test_a_log_that_cannot_be_learned_from() -> None:
    table = walk(5)
    twice = {name: [*column, *column[:3]] for name, column in table.items()}
    found = examine(twice, SCHEMA, ending="cut")
    assert not found.is_sound
    assert found.findings[0].level == "error"
    assert "duplicate time" in found.findings[0].found
    assert found.duplicates == 3
    with pytest.raises(DataError, match="no column 'y' in the table"):
        examine(table, Schema([["y"], ["a"]], ["a"], "u"), ending="cut")


def test_numbers_are_not_tested_in_bins() -> None:
    table = walk(20)
    table["x"] = [x + 0.5 for x in table["x"]]
    found = examine(table, SCHEMA, ending="cut")
    assert found.markov is not None
    assert "continuous variables: x" in found.markov.not_tested
    assert found.coverage is None


def test_large_logs_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["rspmn.doctor.examine"], "SAMPLE", 500)
    found = examine(walk(), SCHEMA, ending="cut")
    assert found.markov is not None
    assert found.markov.steps == 50 * 8  # 50 episodes of 10 steps


def test_the_wide_layout(tmp_path: Path) -> None:
    table = {f"{name}{t}": [(k + t) % 3 if name == "x" else k % 2 for k in range(40)]
             for t in range(4) for name in "xau"}  # fmt: skip
    found = examine(table, SCHEMA, wide=True, ending="cut")
    assert found.episodes == 40
    assert found.markov is not None


# ---- proposals and commands ----------------------------------------------------------


def test_a_proposal() -> None:
    table = walk() | {"patient_id": [f"p{k}" for k in range(3000)], "note": ["n"] * 3000}
    table["treatment"], table["t"] = table.pop("a"), table.pop("time")
    table["payoff"] = table.pop("u")
    with open_source(table) as source:
        found = propose(survey(source))
    assert found.found == {"episode", "time"}
    assert (found.log.episode, found.log.time) == ("episode", "t")
    assert (found.decisions, found.utility, found.state) == (("treatment",), "payoff", ("x",))
    assert dict(found.left_out).keys() == {"patient_id", "note"}
    assert found.schema == Schema(
        [["x"], ["treatment"]], ["treatment"], "payoff",
        {"x": Kind.INTEGER, "treatment": Kind.CATEGORICAL},
    )  # fmt: skip


def test_episodes_are_found_by_their_times() -> None:
    rng = np.random.default_rng(0)
    days = [5, 3, 4] * 20
    table = {
        "pump": [f"p{k}" for k, length in enumerate(days) for _ in range(length)],
        "day": [day for length in days for day in range(length)],
        "site": [k % 2 for k, length in enumerate(days) for _ in range(length)],
        "action": rng.integers(2, size=sum(days)).tolist(),
        "profit": rng.integers(5, size=sum(days)).tolist(),
        "failed": [day == length - 1 for length in days for day in range(length)],
    }
    with open_source(table) as source:
        found = propose(*survey_log(source))
    assert (found.log.episode, found.log.time) == ("pump", "day")
    assert found.log.terminated == "failed"
    assert found.state == ("site",)
    repeated = {name: [*column, column[-1]] for name, column in table.items()}
    with open_source(repeated) as source:  # one pump has a day twice: nothing is a key
        assert survey_log(source)[1] is None


def test_a_proposal_is_a_schema_to_learn_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, schema, model = (str(tmp_path / n) for n in ("log.csv", "s.toml", "model.json"))
    assert main(["generate", "Maze", "--episodes", "300", "-o", log]) == 0
    assert main(["schema", log, "-o", schema]) == 0
    assert Schema.load(schema).decisions == ("action",)
    assert main(["learn", log, "--schema", schema, "-o", model]) == 0
    capsys.readouterr()
    assert main(["schema", log]) == 0
    assert capsys.readouterr().out == Path(schema).read_text()
    assert main(["schema", log, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["utility"] == "reward"


def test_the_doctor_on_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, schema = (str(tmp_path / n) for n in ("log.csv", "s.toml"))
    main(["generate", "FrozenLake", "--episodes", "500", "-o", log, "--schema", schema])
    capsys.readouterr()
    assert main(["doctor", log, "--schema", schema]) == 0
    said = capsys.readouterr().out
    assert "500 episodes" in said
    assert "Markov property: no evidence against it" in said
    assert main(["doctor", log, "--json"]) == 0  # the schema is guessed
    found = json.loads(capsys.readouterr().out)
    assert found["episodes"] == 500
    assert found["schema"]["decisions"] == ["action"]
    text = Path(log).read_text().splitlines()
    Path(log).write_text("\n".join([*text, text[5]]) + "\n")
    assert main(["doctor", log, "--schema", schema]) == 1
    assert "error: " in capsys.readouterr().out
    assert main(["doctor", str(tmp_path / "no.csv"), "--schema", schema]) == 2
    Path(log).write_text("p,q\n1,2\n3,4\n")
    assert main(["schema", log]) == 0
    assert "NAME THEM HERE" in capsys.readouterr().out
    assert main(["doctor", log, "--ending", "cut", "--in-order"]) == 2
    assert "no column looks like decisions" in capsys.readouterr().err


def test_kinds_are_those_of_all_rows(tmp_path: Path) -> None:
    """A word after the first thousand rows makes a column one of words, not of booleans."""
    path = tmp_path / "log.csv"
    rows = [
        f"{k},{'maybe' if k == 1999 else 'true'},{'TRUE' if k % 2 else 'false'}"
        for k in range(2000)
    ]
    path.write_text("\n".join(["t,sure,known", *rows]) + "\n")
    with open_source(path) as source:
        found = survey(source)
    assert [column.kind for column in found.columns] == [
        Kind.INTEGER,
        Kind.CATEGORICAL,
        Kind.BOOLEAN,
    ]
