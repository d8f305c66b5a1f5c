"""Text files: what their columns hold is told by all of their cells."""

import gzip
from pathlib import Path

import pytest

from rspmn.data.sources import csv
from rspmn.data.sources.connect import connect
from rspmn.data.sources.csv import load_text
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
    monkeypatch.setattr("rspmn.data.sources.csv.CHUNK", chunk)
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


#: Cells of a column; the first two suggest a type.
LATE = [
    "1 2 3 4", "1 2 3 1.5", "1 2 3 1_000", "1 2 3 0x10", "1 2 3 +5", '1 2 3 ""', "1 2 3 ",
    "1 2 3 1234567890123456789", "1 2 3 12345678901234567890", ".5 2 3 1e-05", "0.5 2 3 1e-05",
    "0.5 2 3 nan", "0.5 2 3 1_0.5", "0.5 2 3 x", "true false True FALSE", "true false true tRue",
    "true false true 1", "a b 3 4", "  3 4", "   ",
]  # fmt: skip


def test_first_rows_only_suggest_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the first two rows are, types are those of all cells."""
    path = tmp_path / "log.csv"
    with connect(None) as connection:

        def loaded() -> tuple[list[str], list[tuple[str, ...]]]:
            query = load_text([str(path)], f"['{path}']", "log", connection)
            found = connection.sql(query)
            return [str(t) for t in found.types], [tuple(map(str, r)) for r in found.fetchall()]

        for column in [*(cells.split(" ") for cells in LATE), ["1", "2", "3", " 5 "]]:
            path.write_text("k,x\n" + "".join(f"{k},{cell}\n" for k, cell in enumerate(column)))
            found = []
            for rows in (20_480, 2):
                monkeypatch.setattr(csv, "FIRST_ROWS", rows)
                found.append(loaded())
            assert found[0] == found[1], column
