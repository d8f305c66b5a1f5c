"""The schema: what it says, what it refuses, and its file."""

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rspmn import Kind, Schema
from rspmn.cli import main
from rspmn.errors import SchemaError


def test_the_paper_s_order() -> None:
    schema = Schema(order=[["x", "y"], ["action"]], decisions=["action"], utility="reward")
    assert schema.information_sets == (("x", "y"), ())
    assert schema.decisions == ("action",)
    assert schema.state_variables == ("x", "y")
    assert schema.variables == ("x", "y", "action", "reward")
    assert schema.known_before("action") == ("x", "y")


def test_several_decisions_with_information_between_them() -> None:
    schema = Schema(
        [["age"], ["test"], ["result", "pain"], ["treat"], ["check"], []],
        ["check", "treat", "test"],
        "health",
    )
    assert schema.decisions == ("test", "treat", "check")  # in the order, however they were named
    assert schema.information_sets == (("age",), ("result", "pain"), (), ())
    assert schema.known_before("treat") == ("age", "test", "result", "pain")
    first_empty = Schema([["d"], ["x"]], ["d"], "u")
    assert first_empty.information_sets == ((), ("x",))
    # sets without a decision between them are one set
    assert Schema([["x"], [], ["y"], ["d"]], ["d"], "u") == Schema([["x", "y"], ["d"]], ["d"], "u")


WRONG = {
    "decision 'acton' is not in the order: did you mean 'action'?": (
        [["x"], ["action"]], ["acton"], "u", {},
    ),
    "order: 'x' appears twice": ([["x"], ["a"], ["x"]], ["a"], "u", {}),
    "order: decision 'a' is inside the information set ['x', 'a']: give it a group": (
        [["x", "a"]], ["a"], "u", {},
    ),
    "no utility: name the column with the reward": ([["x"]], [], "", {}),
    "order: 'u' is the utility, which comes last automatically: remove it": (
        [["x"], ["u"]], [], "u", {},
    ),
    "order: expected lists of names, found 'x': write ['x']": (["x", ["a"]], ["a"], "u", {}),
    "order: expected names, found 3 in [3]": ([[3]], [], "u", {}),
    "decisions: 'a' appears twice": ([["a"]], ["a", "a"], "u", {}),
    "decisions: expected a list of names, found 'a'": ([["a"]], "a", "u", {}),
    "kinds: 'x' is 'catgorical': did you mean 'categorical'?": (
        [["x"]], [], "u", {"x": "catgorical"},
    ),
    "kinds: unknown variable 'z': expected one of 'x', 'u'": ([["x"]], [], "u", {"z": "boolean"}),
    "kinds: decision 'a' is continuous": ([["a"]], ["a"], "u", {"a": "continuous"}),
    "kinds: utility 'u' is categorical, but it must be a number": (
        [["x"]], [], "u", {"u": "categorical"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", WRONG)
def test_contradictions_are_refused(message: str) -> None:
    order, decisions, utility, kinds = WRONG[message]
    with pytest.raises(SchemaError) as caught:
        Schema(order, decisions, utility, kinds)  # type: ignore[arg-type]
    assert message in str(caught.value)


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(st.lists(names, min_size=2, max_size=7, unique=True), st.data())
def test_saved_and_loaded(
    tmp_path_factory: pytest.TempPathFactory, found: list[str], data: st.DataObject
) -> None:
    *state, utility = found
    choice = st.sampled_from(state)
    decisions = data.draw(st.lists(choice, min_size=1, unique=True))
    kinds = data.draw(st.dictionaries(choice, st.sampled_from(["boolean", "integer"])))
    schema = Schema([[name] for name in state], decisions, utility, kinds)
    path = tmp_path_factory.mktemp("schema") / "schema.toml"
    schema.save(path)
    assert Schema.load(path) == schema
    first = path.read_bytes()
    Schema.load(path).save(path)
    assert path.read_bytes() == first


REST = 'decisions = []\nutility = "u"\n'
FILES = {
    "unknown key 'utilty': did you mean 'utility'?": 'order = [["x"]]\nutilty = "u"',
    "no 'utility': a schema needs order, decisions, utility": 'order = [["x"]]\ndecisions = []',
    "not a TOML file": "order = [[",
    "'order' must be a list of lists of names, found 3": f"order = 3\n{REST}",
    "'decisions' must be a list of names, found 'a'": 'order = []\ndecisions = "a"\nutility = "u"',
    "utility: expected a column, an expression": 'order = [["a"]]\ndecisions = []\nutility = 3',
    "'kinds' must map names to kinds": f'order = [["a"]]\n{REST}kinds = 1',
    "order: 'a' appears twice": f'order = [["a", "a"]]\n{REST}',
    "'order' must be a list of lists, found 'a' in it": f'order = ["a"]\n{REST}',
    "decisions: expected names, found ['a']": 'order = [["a"]]\ndecisions = [["a"]]\nutility = "u"',
    "not a schema: nested too deeply": "order = " + "[" * 5000,
}


@pytest.mark.parametrize("message", FILES)
def test_wrong_files_are_refused(message: str, tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(FILES[message])
    with pytest.raises(SchemaError) as caught:
        Schema.load(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_file_without_decisions_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command that reads a schema.toml says the same."""
    path, log = tmp_path / "schema.toml", str(tmp_path / "log.csv")
    path.write_text(f'order = [["offer sent", "segment"]]\n{REST}')
    Path(log).write_text("episode,time,offer sent,segment,u\n0,0,mail,new,1\n")
    learned = ["--schema", str(path), "-o", str(tmp_path / "model.json")]
    for command in (
        ["check", str(path)], ["doctor", log, "--schema", str(path)],
        ["doctor", log, "--single", "--schema", str(path)],
        ["learn", log, *learned], ["learn-spmn", log, *learned],
    ):  # fmt: skip
        assert main(command) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"rspmn: {path}: no decisions: expected at least one variable that")
        assert said.endswith("the variables are 'offer sent', 'segment'\n")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="cannot be read: No such file"):
        Schema.load(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SchemaError, match="not a text file in UTF-8"):
        Schema.load(tmp_path / "bytes.toml")
    with pytest.raises(SchemaError, match="cannot be written: No such file"):
        Schema([["x"]], [], "u").save(tmp_path / "no" / "schema.toml")


def test_more_kinds_become_known() -> None:
    schema = Schema([["x", "y"]], [], "u", {"x": "boolean"}).with_kinds({"y": Kind.INTEGER})
    assert schema.kinds == {"x": Kind.BOOLEAN, "y": Kind.INTEGER}
    with pytest.raises(TypeError):
        schema.kinds["x"] = Kind.INTEGER  # type: ignore[index]
    assert hash(schema) == hash(pickle.loads(pickle.dumps(schema)))
    assert repr(schema) == (
        "Schema([['x', 'y']], decisions=[], utility='u', kinds={'x': 'boolean', 'y': 'integer'})"
    )
    assert Schema((g for g in [["x"], ["a"]]), {"a"}, "u").decisions == ("a",)
