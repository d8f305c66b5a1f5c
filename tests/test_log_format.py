"""One format of a log: in the schema's file, in Python, on the command line, in the model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rspmn
from rspmn import Episodes, Followed, LogFormat, Schema
from rspmn.cli import main
from rspmn.doctor import examine
from rspmn.errors import DataError, SchemaError
from rspmn.model_file import load_rspmn
from same_windows import assert_same

SCHEMA = Schema([["x"], ["a"]], ["a"], "u")
LOG = 'episode = "patient"\ntime = "visit"\nterminated = "cured"\n'


def table(**names: str) -> dict[str, list[Any]]:
    """Two states and two actions, each episode two steps; every second one terminates."""
    columns: dict[str, list[Any]] = {"episode": [], "time": [], "x": [], "a": [], "u": [], "t": []}
    for k in range(40):
        for t in range(2):
            row = (k, t, (k + t) % 2, "lr"[k // 2 % 2], float(t), t == 1 and k % 2 == 0)
            for column, cell in zip(columns.values(), row, strict=True):
                column.append(cell)
    return {names.get(name, name): column for name, column in columns.items()}


CLINIC = table(episode="patient", time="visit", t="cured")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Return a schema.toml that says what the columns of its log are called, and the log."""
    schema, log = tmp_path / "schema.toml", tmp_path / "log.csv"
    head = 'order = [["x"], ["a"]]\ndecisions = ["a"]\nutility = "u"\n'
    schema.write_text(f"{head}[log]\n{LOG}")
    rows = zip(*CLINIC.values(), strict=True)
    lines = [",".join(CLINIC), *(",".join(map(str, row)) for row in rows)]
    log.write_text("\n".join(lines) + "\n")
    return schema, log


def test_the_format_of_a_file_is_used_everywhere(files: tuple[Path, Path]) -> None:
    """Fault: it was lost outside two commands."""
    schema = Schema.load(files[0])
    names: Any = {"episode": "patient", "time": "visit", "terminated": "cured"}
    assert schema.log == LogFormat(**names)
    expected = rspmn.windows(CLINIC, SCHEMA, **names)
    for source in (CLINIC, files[1]):
        assert_same(rspmn.windows(source, schema), expected)
        for read in (Episodes.from_log, Episodes.from_long):
            episodes = read(source, schema)
            assert (episodes.endings == Followed.END).sum() == 20
            assert_same(rspmn.windows(episodes, schema), expected)
    assert examine(CLINIC, schema).endings["terminated"] == 20
    with rspmn.store_windows(CLINIC, schema) as stored:
        assert stored.schema.log == schema.log


def test_the_model_remembers_the_format(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema, log = map(str, files)
    model = str(tmp_path / "model.json")
    assert main(["learn", log, "--schema", schema, "-o", model]) == 0
    assert load_rspmn(model).schema.log == Schema.load(schema).log
    assert main(["loglik", model, log]) == 0
    assert "over 40 episodes" in capsys.readouterr().out
    windows = rspmn.windows(CLINIC, SCHEMA, episode="patient", time="visit", terminated="cured")
    assert windows.schema.log == Schema.load(schema).log


def test_a_model_without_a_format_says_nothing_of_it(tmp_path: Path) -> None:
    """Files of models that were learned from the default format are as they were."""
    from rspmn.learn import learn_rspmn

    for options in ({}, {"terminated": "terminated"}):
        log: Any = table(t="terminated")
        model, _ = learn_rspmn(rspmn.windows(log, SCHEMA, **options))  # type: ignore[arg-type]
        model.save(tmp_path / "model.json")
        assert '"log"' not in (tmp_path / "model.json").read_text()


def test_a_column_called_terminated_is_found(tmp_path: Path) -> None:
    """Fault: the command line found it, Python did not."""
    log = table(t="terminated")
    expected = rspmn.windows(log, SCHEMA, terminated="terminated")
    assert_same(rspmn.windows(log, SCHEMA), expected)
    assert (Episodes.from_long(log, SCHEMA).endings == Followed.END).sum() == 20
    assert examine(log, SCHEMA).endings["terminated"] == 20
    # unless the caller says what the ends mean
    assert (Episodes.from_long(log, SCHEMA, ending="end").endings == Followed.END).all()
    none: Any = {"terminated": None}
    with pytest.raises(DataError, match="the table does not say why episodes ended"):
        rspmn.windows(log, SCHEMA, **none)
    with pytest.raises(DataError, match="the table does not say why episodes ended"):
        rspmn.windows(table(t="done"), SCHEMA)
    known = Schema([["x", "terminated"], ["a"]], ["a"], "u")
    with pytest.raises(DataError, match="remove it from the schema"):
        rspmn.windows(log, known)


def test_arguments_override_the_format() -> None:
    schema = SCHEMA.with_log(episode="patient", time="visit", terminated="cured")
    cut = Episodes.from_log(CLINIC, schema, ending="cut")
    assert (cut.endings == Followed.UNKNOWN).all()
    assert cut.schema.log == LogFormat(episode="patient", time="visit", ending="cut")
    again = cut.schema.with_log(terminated="cured").log
    assert again == schema.log
    for both in (LogFormat, LogFormat().override, schema.with_log):
        with pytest.raises(DataError, match="both terminated and ending say why"):
            both(terminated="done", ending="cut")
    with pytest.raises(TypeError, match="unexpected keyword 'terminatd': did you mean"):
        rspmn.windows(CLINIC, schema, terminatd="cured")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "log",
    [
        LogFormat(),
        LogFormat(episode="e", time=None, gaps="allow"),
        LogFormat(terminated="done"),
        LogFormat(ending="short", wide=True, columns=("u", "a", "x")),
    ],
)
def test_formats_are_kept_in_files(log: LogFormat, tmp_path: Path) -> None:
    schema = Schema([["x"], ["a"]], ["a"], "u", log=log)
    schema.save(tmp_path / "schema.toml")
    assert Schema.load(tmp_path / "schema.toml").log == log
    assert Schema.from_dict(schema.to_dict()).log == log
    assert schema.with_kinds({"x": "integer"}).log == log
    assert ("log" in schema.to_dict()) == (log != LogFormat())


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ("[log]\nepisod = 1\n", "unknown key 'episod': did you mean 'episode'"),
        ("[log]\ntime = 1\n", "'log': time: expected the name of a column, found 1"),
        ("[log]\nending = 'shrot'\n", "'log': ending 'shrot': did you mean 'short'"),
        ("[log]\nin_order = true\ntime = 't'\n", "in_order and time exclude each other"),
        ("[log]\nin_order = 1\n", "in_order: expected true or false, found 1"),
        ("[log]\nwide = 1\n", "wide: expected True or False, found 1"),
        ("[log]\ncolumns = 'x'\n", "columns: expected a list of names, found 'x'"),
        ("[log]\nterminated = 'd'\nending = 'cut'\n", "both terminated and ending say why"),
    ],
)
def test_wrong_formats_are_refused(log: str, message: str, tmp_path: Path) -> None:
    head = 'order = [["x"], ["a"]]\ndecisions = ["a"]\nutility = "u"\n'
    (tmp_path / "schema.toml").write_text(head + log)
    with pytest.raises(SchemaError, match=message):
        Schema.load(tmp_path / "schema.toml")


def test_the_command_line_and_python_say_the_same(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    schema, log = map(str, files)
    plain = Schema.load(schema).with_log(episode="episode", time="time", terminated="terminated")
    plain.save(schema)
    for flags, said in (
        ([], "no episode column 'episode' in the table"),
        (["--episode", "patient"], "name it with --time, or, if the rows"),
    ):
        options: Any = {"episode": "patient"} if flags else {}
        with pytest.raises(DataError) as caught:
            rspmn.windows(log, plain, **options)
        assert main(["learn", log, "--schema", schema, "-o", f"{log}.json", *flags]) == 2
        found = capsys.readouterr().err
        assert said in found
        assert str(caught.value).replace("the option ", "--") in found


def test_an_examination_without_a_schema_goes_by_what_it_proposes() -> None:
    log = table(episode="patient", time="visit", t="done", a="action", u="reward")
    found = examine(log)
    assert found.schema.log == LogFormat(episode="patient", time="visit", terminated="done")
    assert found.episodes == 40
    assert found.schema.variables == ("x", "action", "reward")


@pytest.mark.parametrize(
    "made",
    [
        lambda text: LogFormat(episode=text),
        lambda text: LogFormat(terminated=text),
        lambda text: LogFormat(numbers=((text, "missing"),)),
        lambda text: LogFormat(columns=(text,)),
        lambda text: Schema([["x"], ["a"]], ["a"], "u", available={text: "x > 0"}),
    ],
)
def test_text_that_no_file_can_hold_is_refused(made: Callable[[str], object]) -> None:
    with pytest.raises((DataError, SchemaError), match=r"expected .*found .*ud800"):
        made("\ud800")
