"""The doctor warns before learning, each time with the line to put into the schema.toml."""

import datetime as dt
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import rspmn
from rspmn import Kind, LogFormat, Schema
from rspmn.cli import main
from rspmn.data.sources.open import open_source
from rspmn.doctor import Finding, Proposal, examine, propose, survey_log
from rspmn.doctor.step_findings import far_numbers
from rspmn.envs.domains import DOMAINS
from rspmn.learn import learn_rspmn

Table = dict[str, list[Any]]
START = dt.datetime(2024, 3, 1, 8)


def ward(stays: int = 60, seed: int = 0) -> Table:
    """Draw stays in a ward: labs, attributes, a treatment, what it costs, how it ends."""
    rng = np.random.default_rng(seed)
    rows = []
    for stay in range(stays):
        age, length = int(rng.integers(20, 90)), int(rng.integers(3, 7))
        for day in range(length):
            given, last = bool(rng.integers(2)), day == length - 1
            lactate = round(float(rng.uniform(0.2, 4)), 2)
            rows.append({
                "stay_id": f"s{stay}", "charttime": START + dt.timedelta(days=day, hours=stay % 5),
                "lactate": "<0.5" if lactate < 0.5 else str(lactate), "age": age,
                "fever": bool(rng.integers(2)), "treatment": "drug" if given else "wait",
                "cost": 10.0 + 5 * given, "status": rng.choice(["died", "sent home"])
                if last else "in ward",
            })  # fmt: skip
    return {name: [row[name] for row in rows] for name in rows[0]}


WARD = ward()
STATE = ["fever"]


def schema(*state: str, utility: Any = "-cost", **log: Any) -> Schema:
    format_: Any = {"episode": "stay_id", "time": "charttime", "ending": "end"} | log
    return Schema([list(state), ["treatment"]], ["treatment"], utility).with_log(**format_)


def finding(table: Table, given: Schema, about: str) -> Finding:
    found = [f for f in examine(pl.DataFrame(table), given).findings if f.about == about]
    assert len(found) == 1, found
    return found[0]


def proposal(table: Table, log: LogFormat | None = None) -> Proposal:
    with open_source(pl.DataFrame(table)) as source:
        return propose(*survey_log(source, log), log)


def test_nothing_to_warn_of() -> None:
    about = {f.about for f in examine(pl.DataFrame(WARD), schema("fever")).findings}
    assert about == {"unused"}


def test_steps_that_are_all_distinct() -> None:
    numbers: Any = {"lactate": "limits"}
    table = WARD | {"cost": [float(x.strip("<")) + x.count("3") for x in WARD["lactate"]]}
    found = finding(table, schema("lactate", "age", "fever", numbers=numbers), "distinct")
    assert f"of {len(WARD['age'])} steps are distinct: hardly any state occurs twice" in found.found
    assert found.level == "note"  # nothing has to be done
    assert "lactate" in found.advice
    assert "soft boxes" in found.advice


def test_integers_of_many_values_are_too_fine() -> None:
    """For integers there is a line with conditions, and with it nothing is left to say."""
    ages: Table = {**WARD, "age": list(range(len(WARD["age"])))}
    ages["cost"] = [10.0 * (age // 50) for age in ages["age"]]
    found = finding(ages, schema("age", "fever"), "distinct")
    assert found.line.startswith('order = [["age > ')
    coarse = Schema(tomllib.loads(found.line)["order"], ["treatment"], "-cost",
                    log=schema("fever").log)  # fmt: skip
    assert "distinct" not in {f.about for f in examine(pl.DataFrame(ages), coarse).findings}


def test_attributes() -> None:
    found = finding(WARD, schema("fever", "age"), "attribute")
    assert found.found == "'age' does not change within episodes"
    assert found.advice.startswith("Learning uses it if something depends on it")


def test_states_are_judged_by_what_matters() -> None:
    """Two numbers that nothing depends on make all steps distinct: that is no fault of the log."""
    rng = np.random.default_rng(0)
    log: Table = {name: [] for name in ("episode", "time", "x", "age", "noise", "a", "u")}
    for episode in range(200):
        x, age = int(rng.integers(3)), float(rng.normal())
        for time in range(6):
            a = int(rng.integers(2))
            row = (episode, time, x, age, int(rng.integers(1000)), a, float(x == 2))
            for name, value in zip(log, row, strict=True):
                log[name].append(value)
            x = min(2, x + 1) if a else max(0, x - 1)
    found = examine(pl.DataFrame(log), Schema([["x", "age"], ["a"]], ["a"], "u"), ending="cut")
    assert list(found.aside) == ["age"]
    assert found.coverage is not None
    assert (found.coverage.states, found.coverage.pairs) == (3, 6)
    assert found.markov is not None
    assert (found.markov.not_tested, found.markov.dependences) == ("", ())
    assert {f.about for f in found.findings} == {
        "unused", "attribute", "ignored", "successors"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (lambda cost: cost, " - 1 times it"),
        (lambda cost: [f"bill {c:g}" for c in cost], "-10 if it is 'bill 10', -15 if it is"),
        (lambda cost: [2 * c + 7 for c in cost], "the utility is 3.5 - 0.5 times it"),
        (lambda cost: [-c for c in cost], "they are equal"),
    ],
)
def test_columns_that_give_the_reward_away(column: Any, said: str) -> None:
    table = WARD | {"bill": column(WARD["cost"])}
    found = finding(table, schema("fever", "bill"), "leak")
    assert "'bill' determines the utility of the same step: " in found.found
    assert said in found.found
    assert found.line == 'order = [["fever"], ["treatment"]]'


def test_what_gives_no_reward_away() -> None:
    """A state that the reward depends on does not: several values earn the same."""
    rng = np.random.default_rng(1)
    place = [int(rng.integers(4)) for _ in WARD["age"]]
    table = WARD | {"place": place, "worth": [float(p == 3) for p in place]}
    found = examine(pl.DataFrame(table), schema("place", utility="worth")).findings
    assert "leak" not in {f.about for f in found}


def test_values_that_differ_only_in_case_or_spaces() -> None:
    """A line with a condition makes them one; decisions have to be mended in the log."""
    seen = ["Loyal ", "new", "loyal", "new"] * len(WARD["age"])
    table = WARD | {"segment": seen[: len(WARD["age"])]}
    found = finding(table, schema("fever", "segment"), "spelling")
    assert found.found.startswith("'segment' has values that differ only in case or spaces: 'Loy")
    assert found.line == """order = [["fever", "segment in ('Loyal ', loyal)"], ["treatment"]]"""
    order = tomllib.loads(found.line)["order"]
    mended = Schema(order, ["treatment"], "-cost", log=schema().log)
    assert "spelling" not in {f.about for f in examine(pl.DataFrame(table), mended).findings}
    chosen = ["Drug" if k % 5 == 0 else word for k, word in enumerate(WARD["treatment"])]
    said = finding(WARD | {"treatment": chosen}, schema("fever"), "spelling")
    assert (said.advice, said.line) == ("If they are the same, write them alike in the log", "")


def test_text_among_numbers() -> None:
    found = finding(WARD, schema("fever", "lactate"), "text")
    odd = WARD["lactate"].count("<0.5")
    assert f"text in {odd} of {len(WARD['age'])} rows: '<0.5' ({odd})" in found.found
    assert "'missing' treats all text as missing" in found.advice
    assert (found.table, found.line) == ("log", 'numbers = {"lactate" = "limits"}')
    assert "schema.toml, [log]: numbers = " in str(found)
    table = WARD | {"lactate": [c.replace("<0.5", "n/a") for c in WARD["lactate"]]}
    assert "missing" in finding(table, schema("lactate"), "text").line


def test_costs() -> None:
    found = finding(WARD, schema("fever", utility="cost"), "utility")
    assert (found.table, found.line) == ("", 'utility = "-cost"')
    table = {("total price" if n == "cost" else n): column for n, column in WARD.items()}
    line = finding(table, schema("fever", utility="total price"), "utility").line
    assert line == 'utility = "-`total price`"'
    changed = schema("fever", **tomllib.loads(line))
    assert "utility" not in {f.about for f in examine(pl.DataFrame(table), changed).findings}


def test_duplicates() -> None:
    table = {name: [*column, *column[3:5]] for name, column in WARD.items()}
    given = schema("fever")
    found = finding(table, given, "duplicates")
    assert found.found == "2 rows are equal to another row in all columns"
    assert (found.table, found.line) == ("log", 'duplicates = "drop"')
    once = examine(pl.DataFrame(table), given, duplicates="drop")
    assert once.is_sound
    assert once.steps == len(WARD["age"])
    assert proposal(table).log.duplicates == "drop"


def test_dates_are_times_and_no_states() -> None:
    for dates in (WARD["charttime"], [str(moment) for moment in WARD["charttime"]]):
        table = WARD | {"charttime": dates}
        assert proposal(table).log.time == "charttime"
        found = finding(table, schema("fever", "charttime", time=None), "dates")
        assert (found.table, found.line) == ("log", 'time = "charttime"')


def test_ends_are_seen_in_the_log() -> None:
    """Fault: every flag in the state was taken for a possible end."""
    found = finding(WARD, schema("fever", "status"), "ends")
    assert (found.table, found.line) == ("log", "terminated = \"status in (died, 'sent home')\"")
    proposed = proposal(WARD)
    assert proposed.log.terminated == "status in (died, 'sent home')"
    assert "status" not in proposed.state
    assert "fever" in proposed.state
    assert '{"status" = {"died" = 0, "sent home" = 0}}' in proposed.toml()
    cured = WARD | {"status": [s == "sent home" for s in WARD["status"]]}
    assert proposal(cured).log.terminated == "status"
    log = DOMAINS["SkillTeaching"]().generate(200, 10, 0).to_long()
    del log["terminated"]
    skills = proposal(log)
    assert "terminated" not in skills.found
    assert len(skills.state) > 8
    assert "does say" not in skills.toml().lower()


def test_several_treatments_are_decisions() -> None:
    """By their names; what only looks like one of them is asked about."""
    table = WARD | {"antibiotics": [int(x) for x in WARD["fever"]]}
    del table["treatment"]
    given = np.random.default_rng(1).integers(2, size=(2, len(WARD["age"]))).tolist()
    both = proposal(table | {"vasopressor": given[0]})
    assert both.decisions == ("antibiotics", "vasopressor")
    found = proposal(table | {"paddles": given[0], "alarm": given[1]})
    assert found.decisions == ("antibiotics",)
    assert found.alike == (("paddles", "has the same values as antibiotics"),)
    assert "# paddles has the same values as antibiotics: if it was chosen" in found.toml()


def test_a_proposal_reads_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, toml = tmp_path / "ward.csv", tmp_path / "schema.toml"
    text = pl.DataFrame(WARD).write_csv()
    path.write_bytes(text.replace("\n", "\r\r\n").encode())
    assert main(["schema", str(path), "-o", str(toml)]) == 0
    proposed = Schema.load(toml)
    assert proposed.utility == "-cost"
    assert proposed.log == LogFormat(
        "stay_id", "charttime", "status in (died, 'sent home')", numbers=(("lactate", "limits"),)
    )
    assert "age is constant within episodes" in toml.read_text()
    assert main(["doctor", str(path)]) == 0  # uses what was proposed
    assert "ended: 60 terminated" in capsys.readouterr().out
    assert examine(path, proposed).is_sound
    assert main(["schema", str(path), "--episode", "age"]) == 0
    assert 'episode = "age"' in capsys.readouterr().out


def test_what_a_log_leaves_open() -> None:
    """Gaps, rewards at the end only, times and ends that no column holds."""
    kept = [k for k, status in enumerate(WARD["status"]) if status == "in ward"]
    table = {name: [column[k] for k in kept] for name, column in WARD.items() if name != "status"}
    rows = len(kept)
    last = [k + 1 == rows or table["stay_id"][k + 1] != table["stay_id"][k] for k in range(rows)]
    table["profit"] = [1.0 * (k % 3) if is_last else None for k, is_last in enumerate(last)]
    del table["cost"]
    table["minute"] = [moment.hour * 60 + 1440 * moment.day for moment in table.pop("charttime")]
    proposed = proposal(table)
    assert proposed.utility == "profit or 0"
    assert (proposed.log.time, proposed.log.gaps) == ("minute", "allow")
    found = examine(pl.DataFrame(table))
    errors = [f for f in found.findings if f.level == "error"]
    assert [(f.about, f.line) for f in errors] == [("ends", 'ending = "cut"')]
    assert found.episodes == 60
    given = schema("fever", utility="profit", time="minute")
    assert finding(table, given, "gaps").line == "step = 1440"
    assert finding(table, given, "utility").line == 'utility = "profit or 0"'
    assert examine(pl.DataFrame(table), schema("fever", utility="profit or 0", time="minute"),
                   step=1440).is_sound  # fmt: skip
    assert proposal({n: c for n, c in table.items() if n != "minute"}).log.time is None


def test_a_log_of_machines() -> None:
    """Costs with a unit, counts that are better taken as numbers, a remark here and there."""
    rows = 600
    table: Table = {
        "machine_id": [k // 20 for k in range(rows)],
        "date": [f"2025-01-{1 + k % 20:02d}" for k in range(rows)],
        "hours": [(k * 37) % 331 for k in range(rows)],
        "action": [("none", "service")[k % 7 == 0] for k in range(rows)],
        "cost_eur": [80.0 * (k % 7 == 0) for k in range(rows)],
        "remark": ["breakdown" if k % 50 == 0 else None for k in range(rows)],
    }
    proposed = proposal(table)
    assert proposed.utility == "-cost_eur"
    assert dict(proposed.kinds)["hours"] is Kind.CONTINUOUS
    assert dict(proposed.left_out)["remark"] == "is 'breakdown' or missing"
    whole = Schema([["hours"], ["action"]], ["action"], "-cost_eur", {"hours": Kind.INTEGER},
                   LogFormat(episode="machine_id", time="date", ending="cut"))  # fmt: skip
    assert finding(table, whole, "cardinality").line == '"hours" = "continuous"'
    assert "cardinality" not in {f.about for f in examine(pl.DataFrame(table), proposed.schema,
                                                          ending="cut").findings}  # fmt: skip


def walks(sentinel: float | None = None, ending: str = "known") -> tuple[Table, Schema]:
    """Draw 60 walks of 4 steps; numbers may be replaced, and the last step earn all."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 2, 240)
    if sentinel is not None:
        x[rng.random(240) < 0.05] = sentinel
    last = np.arange(240) % 4 == 3
    table = {"episode": np.repeat(np.arange(60), 4), "time": np.tile(np.arange(4), 60), "x": x,
             "a": rng.choice(["l", "r"], 240), "u": np.where(last & (ending == "cut"), 9.0, 0.0)
             + rng.integers(0, 2, 240)}  # fmt: skip
    kinds = {"x": Kind.CONTINUOUS}
    return {n: c.tolist() for n, c in table.items()}, Schema([["x"], ["a"]], ["a"], "u", kinds)


@pytest.mark.parametrize("sentinel", [None, -999.0, 100.0])
def test_numbers_that_stand_for_nothing_measured(sentinel: float | None) -> None:
    found = [f for f in examine(*walks(sentinel)).findings if f.about == "far numbers"]
    assert len(found) == (sentinel is not None)
    assert all(f"such as {sentinel:.4g}" in f.found for f in found if sentinel is not None)


def test_heavy_tails_are_no_such_numbers() -> None:
    numbers = np.random.default_rng(0).lognormal(0, 1.5, 5000)
    assert not far_numbers(numbers, np.ones(5000, np.int64)).any()
    both = np.append(numbers, [-1e6, 1e6])
    assert np.flatnonzero(far_numbers(both, np.ones(5002, np.int64))).tolist() == [5000, 5001]


def test_steps_that_are_cut_where_all_is_earned() -> None:
    """In the same states, of which there are two, and with the same decisions."""
    table, schema = walks(ending="cut")
    table["x"] = [int(x > 1) for x in table["x"]]
    schema = Schema(schema.order, ["a"], "u")
    (found,) = (f for f in examine(table, schema).findings if f.about == "cut steps")
    assert "60 steps after which the log was cut earn 9.52 on average" in found.found
    _, info = learn_rspmn(rspmn.windows(table, schema, ending="cut"))
    assert info.cut is not None
    assert any(line.startswith("cut steps: 60 steps") for line in str(info).splitlines())
    table, _ = walks()
    table["x"] = [int(x > 1) for x in table["x"]]
    assert learn_rspmn(rspmn.windows(table, schema, ending="cut"))[1].cut is None


def test_hundreds_of_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One query about all of them took more memory than there was."""
    rng, names = np.random.default_rng(0), [f"c{k}" for k in range(300)]
    table = {"episode": np.repeat(np.arange(10), 4), "time": np.tile(np.arange(4), 10),
             **{name: rng.integers(0, 3, 40) for name in names},
             "action": rng.choice(["l", "r"], 40), "reward": rng.random(40)}  # fmt: skip
    pl.DataFrame(table).write_csv(tmp_path / "wide.csv")
    Schema([["c0"], ["action"]], ["action"], "reward").save(tmp_path / "s.toml")
    asked = [str(tmp_path / "wide.csv"), "--schema", str(tmp_path / "s.toml")]
    assert main(["doctor", *asked, "--memory-limit", "500MB"]) == 1
    assert "c1, c2, c3" in (said := capsys.readouterr().out)
    assert "and 279 more" in said
