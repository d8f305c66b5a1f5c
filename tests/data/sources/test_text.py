"""Text files: what their columns hold is told by all of their cells."""

import gzip
from pathlib import Path

import pytest

from rspmn.data.tables import as_table
from rspmn.errors import DataError


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "-2", "", " 3 ", "+4", "007"], [1, -2, None, 3, 4, 7]),
        (["1", "2.5", "", "1e3", "-inf"], [1.0, 2.5, None, 1000.0, float("-inf")]),
        (["1", "99999999999999999999"], ["1", "99999999999999999999"]),
        (["1.5", "99999999999999999999.5"], [1.5, 1e20]),
        (["1", "1_000"], ["1", "1_000"]),
        (["1", "0x10"], ["1", "0x10"]),
        (["1", "x"], ["1", "x"]),
        (["true", "FALSE", ""], [True, False, None]),
        (["yes", "no"], ["yes", "no"]),
        (["2024-01-01", "2024-01-02"], ["2024-01-01", "2024-01-02"]),
        (['"a, b"', '"say ""so"""'], ["a, b", 'say "so"']),
        (["", ""], [None, None]),
    ],
)
def test_a_column_is_what_all_its_cells_are(
    cells: list[str], expected: list[object], tmp_path: Path
) -> None:
    path = tmp_path / "log.csv"
    path.write_text("k,c\n" + "".join(f"0,{cell}\n" for cell in cells))
    found = as_table(path).cells("c")
    values = iter(found.present.tolist())
    assert [None if gone else next(values) for gone in found.missing] == expected


@pytest.mark.parametrize("late", ["1.5", "x", "1e3"])
def test_one_late_cell_counts(late: str, tmp_path: Path) -> None:
    """Whole numbers in fifty thousand rows do not make one of what comes after them."""
    path = tmp_path / "log.csv"
    path.write_text("c,d\n" + "1,2\n" * 50_000 + f"{late},2\n")
    found = as_table(path).cells("c").present.tolist()
    assert found[-1] == (late if late == "x" else float(late))
    assert found[0] == ("1" if late == "x" else 1.0)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a,b\n1,2\n", "b,a\n1,2\n"], "1.csv: its header differs from that of"),
        (["a,a\n1,2\n"], "columns 'a' and 'a' are the same: rename one"),
        (["a,A\n1,2\n"], "columns 'a' and 'A' differ in case only: rename one"),
        (["a,b\n1,2\n3\n"], "expected 2 cells, found 1 in line 3"),
        (["\n1,2\n3\n"], "its first line is empty: expected the names of columns"),
        (['a,b\n1,"2\n3,4\n'], "a quote is not closed"),
    ],
)
def test_headers_and_rows_that_do_not_fit(texts: list[str], message: str, tmp_path: Path) -> None:
    for k, text in enumerate(texts):
        (tmp_path / f"{k}.csv").write_text(text)
    with pytest.raises(DataError) as caught:
        as_table(str(tmp_path / "*.csv"))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        'a,b\n1,"x\r\ny"\r\n2,z\n',
        'a,b\r\n1,"x\r\ny"\n2,z',
        'a,b\r\r\n1,"x\r\ny"\r\r\n2,z\r\r\n',
        'a,b\r1,"x\r\ny"\r2,z\r',
    ],
)
@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_lines_that_end_in_different_ways(
    text: str, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: they were refused. A line end in quotes is part of the cell."""
    monkeypatch.setattr("rspmn.data.sources.line_ends.CHUNK", chunk)
    for name, content in (("log.tsv", text.replace(",", "\t")), ("log.csv.gz", text)):
        path, data = tmp_path / name, content.encode()
        path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
        found = as_table(path)
        assert found.cells("a").present.tolist() == [1, 2]
        assert found.cells("b").present.tolist() == ["x\r\ny", "z"]


def test_signs_inside_quotes_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text('a;"b,c,d,e";f\n1;2;3\n')
    assert as_table(path).names == ["a", "b,c,d,e", "f"]


def test_signs_between_cells(tmp_path: Path) -> None:
    for sign in ",;\t|":
        path = tmp_path / "log.txt"
        path.write_bytes(f"\ufeffa{sign}b c\r\n1{sign}x\r\n".encode())
        assert as_table(path).names == ["a", "b c"]
        assert as_table(path).cells("b c").present.tolist() == ["x"]
