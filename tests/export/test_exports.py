"""Policies that were written out decide as the policies do, in every format."""

import copy
import csv
import io
import json
import pickle
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from number_worlds import compass
from reproductions.single_shot import oil_wildcatter
from rspmn import Policy, Schema, learn_rspmn, learn_spmn, windows
from rspmn.cli import main
from rspmn.data.sources.connect import quoted
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.envs.paper_grid import paper_grid
from rspmn.envs.sys_admin import sys_admin
from rspmn.errors import EvidenceError
from rspmn.export import to_csv, to_json, to_python, to_sql, to_tree
from rspmn.export.python_runtime import BY_SCORES
from rspmn.export.sql_formula import sql_number
from rspmn.export.state_tables import Stage, stages_of
from rspmn.expressions import Expression
from rspmn.expressions.formula import formula_of
from rspmn.trust.safe_choice import Supported
from soft_models import soft_model

State = dict[str, Any]
HOSTILE = ['x"; DROP TABLE states; --', "it's", "ünï\ncode\\", "select"]


def lake() -> Policy:
    return learn_rspmn(frozen_lake().generate(300, 8, 0))[0].policy(8)


def ring() -> Policy:
    return learn_rspmn(sys_admin(machines=3).generate(60, 8, 0))[0].policy(8, min_support=3)


def forbidding() -> Policy:
    model, _ = learn_rspmn(frozen_lake().generate(300, 8, 0))
    return model.policy(8, forbid=["left when cell in (0, 4)"], otherwise="up")


def drilling() -> Policy:
    problem = oil_wildcatter()
    return learn_spmn(problem.sample(800, 0), problem.schema)[0].policy()


def hostile() -> Policy:
    rng = np.random.default_rng(0)
    first, second, act, utility = HOSTILE
    values = ["a'b", 'c"d', "é\n", "NULL", ""]
    table: dict[str, list[Any]] = {
        first: rng.choice(values, 600).tolist(),
        second: rng.integers(0, 2, 600).astype(bool).tolist(),
        act: rng.choice(["do it's", 'don"t'], 600).tolist(),
    }
    codes = [values.index(v) for v in table[first]]
    table[utility] = [
        float((code + flag) % 2 == (made[2] == "n")) + 0.1 * code
        for code, flag, made in zip(codes, table[second], table[act], strict=True)
    ]
    schema = Schema([[first, second], [act]], [act], utility)
    return learn_spmn(table, schema)[0].policy()


FINITE = {f.__name__: f for f in (lake, ring, forbidding, drilling, hostile)}


def states_of(stage: Stage) -> list[State]:
    cells = {n: [c for c in own if repr(c) != "OTHER"] for n, own in stage.cells.items()}
    return [dict(zip(cells, row, strict=True)) for row in product(*cells.values())]


def decided(policy: Policy, state: State) -> Any:
    try:
        return policy.act(state)
    except EvidenceError:
        return None


@pytest.fixture(scope="module", params=FINITE)
def finite(request: pytest.FixtureRequest) -> tuple[Policy, list[tuple[State, Any]]]:
    """A policy, and what it decides in each state."""
    policy = FINITE[request.param]()
    states = [state for stage in stages_of(policy) for state in states_of(stage)]
    assert len(states) >= 10
    return policy, [(state, decided(policy, state)) for state in states]


def run_python(policy: Policy) -> Callable[[State], Any]:
    names: dict[str, Any] = {}
    exec(compile(to_python(policy), "policy.py", "exec"), names)
    return names["act"]  # type: ignore[no-any-return]


def answer(act: Callable[[State], Any], state: State) -> Any:
    try:
        return act(state)
    except LookupError:
        return None


Finite = tuple[Policy, list[tuple[State, Any]]]


def test_the_python_file_decides_as_the_policy(finite: Finite) -> None:
    policy, made = finite
    act = run_python(policy)
    for state, expected in made:
        assert answer(act, state) == expected, state
    state = next(state for state, _ in made if state)
    first = next(iter(state))
    never = 10**6 if isinstance(state[first], int) else "never seen"
    assert answer(act, {**state, first: never}) == decided(policy, {**state, first: never})


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_the_query_decides_as_the_policy(finite: Finite, engine: str) -> None:
    policy, made = finite
    names = list(dict.fromkeys(name for state, _ in made for name in state))
    decisions = policy.model.schema.decisions
    for stage in stages_of(policy):
        here = [(s, e) for s, e in made if set(s) == set(stage.cells)]
        rows = run_sql(policy, engine, names, [state for state, _ in here])
        for (state, expected), row in zip(here, rows, strict=True):
            of = expected if isinstance(expected, Mapping) else {decisions[0]: expected}
            for name in stage.decisions:
                assert row[name] == of.get(name), state


def connected(engine: str) -> "closing[Any]":
    return closing(sqlite3.connect(":memory:") if engine == "sqlite" else duckdb.connect())


def run_sql(
    policy: Policy, engine: str, names: list[str], states: list[State]
) -> list[dict[str, Any]]:
    """Return the rows of the query, with the table of states made anew."""
    with connected(engine) as connection:
        columns = ", ".join(
            f'"{n.replace(chr(34), 2 * chr(34))}" {sql_type(n, states)}' for n in names
        )
        connection.execute(f'CREATE TABLE "states" ("row" INTEGER, {columns})')
        marks = ", ".join("?" * (len(names) + 1))
        rows = [[k, *(state.get(name) for name in names)] for k, state in enumerate(states)]
        connection.executemany(f'INSERT INTO "states" VALUES ({marks})', rows)
        found = connection.execute(to_sql(policy))
        titles = [column[0] for column in found.description]
        fetched = found.fetchall()
    if "row" in titles:
        fetched.sort(key=lambda row: row[titles.index("row")])
    return [dict(zip(titles, row, strict=True)) for row in fetched]


def sql_type(name: str, states: list[State]) -> str:
    found = {type(state[name]) for state in states if state.get(name) is not None}
    kinds = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE"}
    return kinds.get(found.pop(), "VARCHAR") if len(found) == 1 else "VARCHAR"


def test_json_and_csv_decide_as_the_policy(finite: Finite) -> None:
    policy, made = finite
    stages = json.loads(to_json(policy))["stages"]
    for state, expected in made:
        stage = next(s for s in stages if not set(s["decisions"]) & set(state))
        node = stage["tree"]
        while isinstance(node, dict):
            name, how, value = node["if"]
            node = node["then" if passes(state[name], how, value) else "else"]
        if expected is None:
            assert node is None
        else:
            of = expected if isinstance(expected, Mapping) else {stage["decisions"][0]: expected}
            assert node == [of[name] for name in stage["decisions"]]
    table = list(csv.DictReader(io.StringIO(to_csv(policy))))
    first = stages_of(policy)[0]
    written = {tuple(row[n] for n in first.cells): row for row in table}
    complete = [(s, e) for s, e in made if set(s) == set(first.cells) and None not in s.values()]
    assert len(written) == sum(e is not None for _, e in complete)
    for state, expected in complete:
        if expected is not None:
            row = written[tuple(map(str, state.values()))]
            of = expected if isinstance(expected, Mapping) else {first.decisions[0]: expected}
            assert [row[name] for name in first.decisions] == [
                str(of[name]) for name in first.decisions
            ]


def passes(found: Any, how: str, value: Any) -> bool:
    if found is None:
        return how == "missing"
    return bool(found == value if how == "is" else how == "at most" and found <= value)


def test_the_tree_names_all_that_is_decided(finite: Finite) -> None:
    policy, _ = finite
    text = to_tree(policy)
    assert "agrees with the policy in" not in text  # all of it
    assert text.count("yes: ") == text.count("no:  ")
    assert "agrees with the policy in" in to_tree(policy, leaves=2) or text.count("yes: ") < 3


# ---- numbers ----------------------------------------------------------------------------------


def numbers(seed: int) -> tuple[Policy, list[State]]:
    rng = np.random.default_rng(seed)
    model = soft_model(rng, 4, 2, actions=3, whole=seed % 2 == 1, marks=seed > 1)
    states: list[State] = []
    for _ in range(60):
        state: State = {name: float(rng.uniform(0, 6)) for name in ("x0", "x1")}
        if rng.random() < 0.3:
            state["x0"] = None
        states.append(state)
    return model.policy(3), [*states, {"x0": None, "x1": None}]


def learned_numbers() -> tuple[Policy, list[State]]:
    """A table of numbers, integers among them, in which leaves have all families."""
    rng = np.random.default_rng(0)
    x, k, a = rng.normal(size=250), rng.poisson(30, 250), rng.integers(0, 2, 250)
    table = {"x": x.tolist(), "k": k.tolist(), "a": a.tolist()}
    table["u"] = ((a == (x + 0.05 * (k - 30) > 0)) + 0.0).tolist()
    schema = Schema([["x", "k"], ["a"]], ["a"], "u", {"x": "continuous", "k": "integer"})
    policy = learn_spmn(table, schema)[0].policy()
    states: list[State] = [
        {"x": None if i % 7 == 0 else float(rng.normal()), "k": int(rng.poisson(30))}
        for i in range(80)
    ]
    return policy, states


def numbers_on_a_circle() -> tuple[Policy, list[State]]:
    """A heading by its cosine and sine; some states lack one, some are off the circle."""
    log, schema = compass(40, 0)
    model, info = learn_rspmn(windows(log, schema, terminated="over"))
    assert info.numbers.circles
    states: list[State] = [
        {
            "east": None if k % 7 == 0 else float(np.cos(k)) * (2 if k % 5 == 0 else 1),
            "north": float(np.sin(k)),
        }
        for k in range(60)
    ]
    return model.policy(4), states


def ruled_numbers() -> tuple[Policy, list[State]]:
    """Rules and laws by state: a variable that nothing depends on is in one of them."""
    policy, states = numbers(3)
    values = policy.planned.offers.values("D0")
    schema = policy.model.schema
    law = {"D0": {str(values[0]): "x0 > 2 or x1 - x0 / 2 < 1"}}
    lawful = Schema(schema.order, schema.decisions, "u", schema.kinds, available=law)
    rules = [f"{values[1]} when x1 in (1, 2) or 3 < x1 < 4.5", f"{values[2]} when not x0 < 5"]
    model = replace(policy.model, schema=lawful)
    return model.policy(3, forbid=rules, otherwise=values[0]), states


def several_numbers(decisions: int) -> tuple[Policy, list[State]]:
    """Decisions that are made together; one is never allowed, and one only after another."""
    rng = np.random.default_rng(decisions)
    model = soft_model(rng, 3, 2, decisions=decisions, actions=3, marks=True)
    first, second = (model.policy(2).planned.offers.values(name) for name in ("D0", "D1"))
    rules = [f"D1={second[0]} when D0 == {first[0]} and x0 < 3", f"D0={first[2]}"]
    states: list[State] = [
        {"x0": None if k % 9 == 0 else float(rng.uniform(0, 3)), "x1": float(rng.uniform(0, 3))}
        for k in range(60)
    ]
    return model.policy(2, forbid=rules), states


CASES: dict[object, Callable[[], tuple[Policy, list[State]]]] = {
    **{seed: partial(numbers, seed) for seed in range(4)},
    "learned": learned_numbers,
    "circle": numbers_on_a_circle,
    "ruled": ruled_numbers,
    "two": partial(several_numbers, 2),
    "three": partial(several_numbers, 3),
}


@cache
def case(name: object) -> tuple[Policy, list[State]]:
    """Return a policy and states; each is made once."""
    return CASES[name]()


@pytest.fixture(scope="module", params=CASES)
def of_numbers(request: pytest.FixtureRequest) -> tuple[Policy, list[tuple[State, Any]]]:
    policy, states = case(request.param)
    return policy, [(state, decided(policy, state)) for state in states]


def test_numbers_in_a_python_file(of_numbers: Finite) -> None:
    policy, made = of_numbers
    act = run_python(policy)
    assert [answer(act, state) for state, _ in made] == [expected for _, expected in made]


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_numbers_in_a_query(of_numbers: Finite, engine: str) -> None:
    policy, made = of_numbers
    if isinstance(policy.criterion, Supported):
        with pytest.raises(EvidenceError, match="cannot be exported as SQL"):
            to_sql(policy)
        return
    decisions, names = policy.model.schema.decisions, list(made[0][0])
    rows = run_sql(policy, engine, names, [state for state, _ in made])
    for (state, expected), row in zip(made, rows, strict=True):
        of = expected if isinstance(expected, Mapping) else {decisions[0]: expected}
        assert {name: row[name] for name in decisions} == {
            name: of.get(name) for name in decisions
        }, state


def test_a_python_file_reads_a_table(tmp_path: Path) -> None:
    for name, policy, text in (
        ("lake", lake(), "cell\n14\n0\n"), ("numbers", numbers(0)[0], "x0,x1\n1.5,2\n,3\n"),
    ):  # fmt: skip
        path = tmp_path / f"{name}.py"
        path.write_text(to_python(policy), encoding="utf-8")
        command = [sys.executable, str(path)]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        for row in csv.DictReader(io.StringIO(done.stdout)):
            made = row.pop(policy.model.schema.decisions[0])
            state = {n: float(v) if "." in v else int(v) for n, v in row.items() if v}
            assert made == str(policy.act(state))


def test_rules_matter_where_they_are_tested() -> None:
    """The cases above would be of no use if rules changed nothing."""
    for name in ("ruled", "two", "three"):
        policy, states = case(name)
        free = policy.model.policy(policy.horizon)
        assert sum(decided(policy, state) != decided(free, state) for state in states) > 5


FORMULAS = json.loads((Path(__file__).parents[1] / "formulas.json").read_text(encoding="utf-8"))


def test_formulas_in_a_python_file() -> None:
    names: dict[str, Any] = {"SCORES": {"informative": {}}}
    exec(compile(BY_SCORES, "policy.py", "exec"), names)
    for row in FORMULAS:
        formula = formula_of(Expression.parse(row["expression"]), row["columns"])
        for state, expected in row["cases"]:
            assert names["_formula_value"](formula, state) == expected, (row["expression"], state)


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_formulas_in_a_query(engine: str) -> None:
    with connected(engine) as connection:
        types = {"number": "DOUBLE", "condition": "BOOLEAN", "text": "VARCHAR"}
        for row in FORMULAS:
            formula = formula_of(Expression.parse(row["expression"]), row["columns"])
            listed = ", ".join(
                f"CAST(? AS {types[h]}) AS {quoted(n)}" for n, h in row["columns"].items()
            )
            if formula[0] == "column":  # type: ignore[index]
                formula = ["number", formula]  # a condition
            query = f"SELECT {sql_number(formula, quoted)} FROM (SELECT {listed}) AS states"
            for state, expected in row["cases"]:
                found = connection.execute(query, [state[n] for n in row["columns"]]).fetchone()[0]
                assert found == expected, (row["expression"], state)


def test_the_tree_of_numbers_says_how_good_it_is() -> None:
    policy, _ = numbers(0)
    assert "agrees with the policy in" in to_tree(policy, leaves=3)
    assert to_csv(policy).startswith("node,x0,x1,D0,value")
    assert json.loads(to_json(policy))["scores"]["decisions"] == ["D0"]


# ---- files and copies -------------------------------------------------------------------------


@pytest.mark.parametrize("made", [pickle.loads, None])
def test_models_and_policies_are_copied(made: Callable[[bytes], Any] | None) -> None:
    cases: list[tuple[Policy, State]] = [
        (lake(), {"cell": 14}), (forbidding(), {"cell": 4}), (ring(), {"m0": True}),
        (numbers(0)[0], {"x0": 1.0, "x1": 1.0}),
    ]  # fmt: skip
    for policy, state in cases:
        decided(policy, state)  # what is kept for later questions is copied too
        again = copy.deepcopy(policy) if made is None else made(pickle.dumps(policy))
        assert decided(again, state) == decided(policy, state)
        assert again.model == policy.model
    model = learn_spmn({"a": [0, 1], "u": [0.0, 1.0]}, Schema([["a"]], ["a"], "u"))[0]
    assert pickle.loads(pickle.dumps(model)) == model


def test_on_the_command_line(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    policy = lake()
    policy.model.save(tmp_path / "lake.json")
    words = ["policy", str(tmp_path / "lake.json"), "--horizon", "8", "--to"]
    for form, expected in {
        "csv": to_csv(policy), "json": to_json(policy), "python": to_python(policy),
        "tree": to_tree(policy), "sql": to_sql(policy),
    }.items():  # fmt: skip
        assert main([*words, form]) == 0
        assert capsys.readouterr().out == expected
        target = tmp_path / f"policy.{form}"
        assert main([*words, form, "-o", str(target)]) == 0
        assert target.read_text(encoding="utf-8") == expected
        capsys.readouterr()


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
@pytest.mark.parametrize("name", ["n1", "w0", "N0", "p0", "c0", "x0"])
def test_names_that_the_query_uses_itself(name: str, engine: str) -> None:
    """As the variable, and as another column of the table."""
    rng = np.random.default_rng(0)
    x, a = rng.uniform(0, 10, 400), rng.choice(["l", "r"], 400)
    log = {"episode": np.arange(400), "time": np.zeros(400, int), name: x, "a": a,
           "u": np.where((x > 5) == (a == "l"), 1.0, 0.0)}  # fmt: skip
    schema = Schema([[name], ["a"]], ["a"], "u", {name: "continuous"})
    policy = learn_rspmn(windows(log, schema, ending="end"))[0].policy(1)
    states = [{name: number} for number in (1.0, 3.0, 7.0, 9.0)]
    expected = [(number, policy.act({name: number})) for number in (1.0, 3.0, 7.0, 9.0)]
    with connected(engine) as connection:
        others = [other for other in ("n0", "w1", "c1") if other != name.lower()]
        columns = ", ".join(f"{quoted(each)} DOUBLE" for each in [name, *others])
        connection.execute(f"CREATE TABLE states ({columns})")
        for state in states:
            cells = (state[name], *(7.0 for _ in others))
            connection.execute(f"INSERT INTO states VALUES ({', '.join('?' * len(cells))})", cells)
        found = connection.execute(to_sql(policy)).fetchall()
    assert sorted(found) == expected
    assert {made for _, made in expected} == {"l", "r"}


def test_computed_variables_are_asked_for_in_a_python_file() -> None:
    rows = [(k, 0, k % 4, "lr"[k // 4 % 2]) for k in range(80)]
    log = dict(zip(("episode", "time", "v", "a"), map(list, zip(*rows, strict=True)), strict=True))
    log["u"] = [float((v > 1) == (a == "r")) for _, _, v, a in rows]
    policy = learn_rspmn(windows(log, Schema([["v > 1"], ["a"]], ["a"], "u"), ending="end"))[0]
    act = run_python(policy.policy(1))
    assert [act({"v > 1": True}), act({"v > 1": False})] == ["r", "l"]
    with pytest.raises(LookupError, match="give 'v > 1': it is not computed from 'v' here"):
        act({"v": 3})


def test_a_python_file_refuses_what_is_no_variable(finite: Finite) -> None:
    policy, made = finite
    state, expected = next((state, expected) for state, expected in made if state and expected)
    act = run_python(policy)
    assert act({**state, "episode": 3}) == expected
    with pytest.raises(LookupError, match="unknown variable 'stat': expected some of '"):
        act({**state, "stat": 1})


def test_a_table_for_a_python_file_has_the_columns_of_states(tmp_path: Path) -> None:
    """As for `act_many`, it may have others."""
    path = tmp_path / "decide.py"
    path.write_text(to_python(paper_grid().policy(horizon=4)))

    def run(table: str) -> tuple[str, str]:
        done = subprocess.run([sys.executable, path], input=table, capture_output=True, text=True,
                              check=False)  # fmt: skip
        return done.stdout, done.stderr

    assert run("id,x,y\n7,0,0\n") == ("id,x,y,action\n7,0,0,down\n", "")
    assert run("x,yy\n0,0\n") == ("", "no column 'y' in the table: it has ['x', 'yy']\n")


def test_nan_is_missing_in_a_python_file() -> None:
    rng = np.random.default_rng(0)
    lacks, a = rng.random(600) < 0.4, rng.choice(["l", "r"], 600)
    crp = [
        None if lack else float(x) for lack, x in zip(lacks, rng.uniform(0, 9, 600), strict=True)
    ]
    log = {"episode": np.arange(600), "time": np.zeros(600, int), "crp": crp, "a": a,
           "u": np.where(lacks == (a == "l"), 5.0, -5.0)}  # fmt: skip
    schema = Schema([["crp"], ["a"]], ["a"], "u", missing={"crp": "informative"})
    policy = learn_rspmn(windows(log, schema, ending="end"))[0].policy(1)
    act = run_python(policy)
    for value in (None, float("nan"), 3.0):
        assert act({"crp": value}) == policy.act({"crp": value})
    assert act({"crp": float("nan")}) != act({"crp": 3.0})


def test_text_that_looks_like_numbers_in_a_python_file(tmp_path: Path) -> None:
    names = ["007", "nan", "True", "1"]
    rows = [(k, 0, names[k % 4], "lr"[k // 4 % 2]) for k in range(80)]
    log = dict(zip(("episode", "time", "x", "a"), map(list, zip(*rows, strict=True)), strict=True))
    log["u"] = [float((x in ("007", "1")) == (a == "r")) for _, _, x, a in rows]
    policy = learn_rspmn(windows(log, Schema([["x"], ["a"]], ["a"], "u"), ending="end"))[0]
    (tmp_path / "policy.py").write_text(to_python(policy.policy(1)), encoding="utf-8")
    made = subprocess.run([sys.executable, "policy.py"], cwd=tmp_path, text=True, check=True,
                          input="x\n" + "\n".join(names), capture_output=True).stdout  # fmt: skip
    assert [row["a"] for row in csv.DictReader(io.StringIO(made))] == ["r", "l", "l", "r"]


def test_a_tree_of_integers_with_many_values() -> None:
    rng = np.random.default_rng(0)
    x, a = rng.integers(-20, 1000, 300), rng.choice(["l", "r"], 300)
    log = {"episode": np.arange(300), "time": np.zeros(300, int), "x": x, "a": a,
           "u": (x - 400) * np.where(a == "l", 1.0, -1.0)}  # fmt: skip
    model, _ = learn_rspmn(windows(log, Schema([["x"], ["a"]], ["a"], "u"), ending="end"))
    shown = to_tree(model.policy(1))
    assert "x is at most" in shown
    assert "." not in shown.split("x is at most ")[1].split("?")[0]
