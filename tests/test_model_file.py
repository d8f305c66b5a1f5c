"""Model files: the same bytes again, whole or not at all, and what is wrong is named."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factored_models import random_factored
from model_seeds import as_arrays
from random_models import random_rspmn, random_setting
from rspmn import RSPMN, NetworkBuilder, Schema, files
from rspmn.circuit import Categorical, IntegerHistogram, PiecewiseLinear
from rspmn.end_nodes import end_root, weighted_top
from rspmn.envs.paper_grid import paper_grid
from rspmn.errors import ModelFileError


def with_every_leaf() -> RSPMN:
    schema = Schema(
        [["cat", "int", "real", "é\n"], ["a"]],
        ["a"],
        "u",
        {"int": "integer", "real": "continuous", "é\n": "boolean"},
    )
    b = NetworkBuilder()
    leaves = [
        b.leaf("cat", Categorical(("ü", '"quoted"'), (0.1, 0.9))),
        b.leaf("int", IntegerHistogram((-5, 0, 100), (1 / 3, 2 / 3))),
        b.leaf("real", PiecewiseLinear.scaled((-1e-7, 0.1, 1e9), (1.0, 0.3, 0.0))),
        b.leaf("é\n", Categorical((False, True), (0.5, 0.5))),
    ]
    act = b.max(
        "a", {v: b.product([b.utility("u", 0.1 + 0.2, 7, 1e-300), b.latent(1)]) for v in (1.5, "x")}
    )
    root = b.product([*leaves, act])
    template = b.build(root, end_root(b, schema, 1))
    return RSPMN(schema, weighted_top([1.0, 0.0]), template, visits=(12.0, 0.0))


@given(st.integers(0, 2**32 - 1))
def test_random_models_survive(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = random_rspmn(rng, random_setting(rng, 2), 3, told_apart=False, end=bool(seed % 2))
    path = tmp_path_factory.mktemp("model") / "model.json"
    model.save(path)
    first = path.read_bytes()
    again = RSPMN.load(path)
    assert again == model
    again.save(path)
    assert path.read_bytes() == first


@given(st.integers(0, 2**32 - 1))
def test_arrays_are_the_same_model(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = random_rspmn(rng, random_setting(rng, 2), 3, told_apart=False, end=bool(seed % 2))
    if seed % 3 == 0:
        model = random_factored(rng, states=4, components=2)
    path = tmp_path_factory.mktemp("model") / "model.json"
    as_arrays(model, path)
    first = path.read_bytes()
    again = RSPMN.load(path)
    assert again == model
    assert json.loads(first)["template"].keys() >= {"arrays"}
    as_arrays(again, path)
    assert path.read_bytes() == first
    again.save(path)
    assert RSPMN.load(path) == model


@pytest.mark.parametrize("name", ["model.json", "model.json.gz"])
def test_every_kind_of_leaf_survives(tmp_path: Path, name: str) -> None:
    model, path = with_every_leaf(), tmp_path / name
    model.save(path)
    first = path.read_bytes()
    if name.endswith(".gz"):
        assert first[:2] == b"\x1f\x8b"
        assert first[4:8] == bytes(4)  # no time stamp
    else:
        assert first.startswith(b'{\n"format": "rspmn"')
    again = RSPMN.load(path)
    assert again == model
    again.save(path)
    assert path.read_bytes() == first
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_a_file_of_the_first_version_reads_the_same_for_ever(tmp_path: Path) -> None:
    golden = Path(__file__).parent / "golden" / "grid_v1.json"
    assert RSPMN.load(golden) == paper_grid()
    paper_grid().save(tmp_path / "grid.json")
    written = (tmp_path / "grid.json").read_bytes()
    assert written == golden.read_bytes().replace(b'"version": 1,', b'"version": 14,')


def edited(change: Callable[[dict[str, Any]], object]) -> bytes:
    path = Path(__file__).parent / "golden" / "grid_v1.json"
    raw = json.loads(path.read_bytes())
    change(raw)
    return json.dumps(raw).encode()


def put(*keys: Any) -> Callable[[dict[str, Any]], object]:
    """Return a change that puts the last of `keys` at the place named by those before it."""

    def change(raw: Any) -> None:
        for key in keys[:-2]:
            raw = raw[key]
        raw[keys[-2]] = keys[-1]

    return change


WRONG: dict[str, bytes] = {
    "not a model file: Expecting value (line 1, column 1)": b"",
    "not a model file: not UTF-8 text (byte 0)": b"\xff\xff",
    "a damaged gzip file": gzip.compress(b"{}" * 50)[:-8],
    "not a model file: nested too deeply": b"[" * 100_000,
    "bytes that unpack to more than 67108864: if this is a model": gzip.compress(
        b" " * (2**26 + 1), 9
    ),
    "template, node 2: 'children' is too large a number": edited(
        put("template", "nodes", 2, "children", [2**63])
    ),
    "expected visits from 0 to 9.01e+15, found 1e+300": edited(put("visits", [1e300] * 4)),
    "expected an object, found []": b"[]",
    "duplicate key 'format' in an object": b'{"format": 1, "format": 2}',
    "not a model file: Exceeds the limit": b"9" * 5000,
    "template, node 0: 'mean' is too large a number": edited(
        put("template", "nodes", 0, "mean", 10**400)
    ),
    "template, node 2: 'weights' is too large a number": edited(
        put("template", "nodes", 2, "weights", [10**400])
    ),
    "expected probabilities from 0 to 1, found 1e+308": edited(
        put("template", "nodes", 2, "weights", [1e308])
    ),
    "node 0: Utility('reward'): expected a mean from -1e+100 to 1e+100, found 1e+300": edited(
        put("template", "nodes", 0, "mean", 1e300)
    ),
    "template, node 12: decision: expected text": edited(
        put("template", "nodes", 12, "decision", "\ud800")
    ),
    "node 10: values: expected a string, int, float, bool or END, found {'end': 1}": edited(
        put("template", "nodes", 10, "values", [{"end": 1}])
    ),
    'not a model file: no "format": "rspmn"': b"{}",
    "expected finite numbers, found NaN": b'{"format": NaN}',
    "format version 15 is newer than this rspmn reads (up to 14): upgrade rspmn": edited(
        put("version", 15)
    ),
    "there is no format version 0": edited(put("version", 0)),
    "'version' must be an integer, found 'one'": edited(put("version", "one")),
    "'version' must be an integer, found True": edited(put("version", True)),
    "unknown kind of model 'spn': did you mean 'spmn'?": edited(put("kind", "spn")),
    "model.json: kind: expected text, found": edited(put("kind", "\ud800")),
    "unknown key 'templat': did you mean 'template'?": edited(put("templat", 1)),
    "schema: unknown key 'utilty'": edited(put("schema", "utilty", "r")),
    "schema: order: 'x' appears twice": edited(put("schema", "order", [["x", "x"]])),
    "template: expected an object, found None": edited(lambda raw: raw.pop("template")),
    "no 'visits'": edited(lambda raw: raw.pop("visits")),
    "template, node 0: no 'kind'": edited(lambda raw: raw["template"]["nodes"][0].pop("kind")),
    "template, node 0: unknown kind 'utilty': did you mean 'utility'?": edited(
        put("template", "nodes", 0, "kind", "utilty")
    ),
    "template, node 0: its 'id' is 7, expected 0": edited(put("template", "nodes", 0, "id", 7)),
    "template, node 0: 'mean' must be a number, found 'high'": edited(
        put("template", "nodes", 0, "mean", "high")
    ),
    "template, node 0: unknown key 'colour'": edited(put("template", "nodes", 0, "colour", "red")),
    "template, node 2: 'children' must be a list of integers, found 1.5 in it": edited(
        put("template", "nodes", 2, "children", [1.5])
    ),
    "template, node 2: Sum weights: expected probabilities that sum to 1, found 0.5": edited(
        put("template", "nodes", 2, "weights", [0.5])
    ),
    "template: Network: node 2 (Sum) has child 9": edited(
        put("template", "nodes", 2, "children", [9])
    ),
    "top: node 0 (path 1 → 0) is not mapped to a root (Defs. 6, 8)": edited(
        put("top", "nodes", 0, "interface", 44)
    ),
    "RSPMN: template: node 13 (path 13) is not decomposable (Def. 3)": edited(
        put("template", "nodes", 13, "children", [10, 10, 11, 12])
    ),
}


#: What may be wrong with a network that is written as arrays, in a model of products of factors.
WRONG_ARRAYS: dict[str, tuple[Any, ...]] = {
    "template, arrays: unknown key 'knid': did you mean 'kind'?": ("knid", []),
    "arrays: 'kind': expected integers from 0 to 6, found 7": ("kind", 0, 7),
    "arrays: 'width': expected 22, found 1": ("width", [2]),
    "arrays: 'children': expected integers from 0 to": ("children", "differences", 0, -1),
    "42 'children', but 43 by 'width'": ("width", 0, 3),
    "arrays: 'width': expected integers from 0 to": ("width", 0, 2**62),
    "has a child that does not come before it": ("children", "differences", 0, 1),
    "has weights that do not sum to 1": ("weights", 0, 0.5),
    "arrays: 'weights': expected": ("weights", []),
    "arrays: expected names of decisions and utilities, found ''": ("decisions", 0, ""),
    "arrays: 'decisions': expected each once": ("decisions", ["a", "a"]),
    "arrays: 'decision': expected integers from 0 to": ("decision", 0, 9),
    "arrays: 'choice': expected integers from 0 to": ("choice", 0, 99),
    "Max: a value has several branches": ("values", [1, True, 2, 3]),
    "arrays: 'interface': expected": ("interface", [5]),
    "arrays: 'utility': expected integers from 0 to 0, found 1": ("utility", 0, 1),
    "arrays: 'mean' must be a list of numbers, found None in it": ("mean", 0, None),
    "expected a mean from -1e+100 to 1e+100, found 1e+300": ("mean", 0, 1e300),
    "arrays: 'leaves': expected": ("leaves", []),
    "arrays, leaf 0: unknown key 'id'": ("leaves", 0, "id", 3),
    "arrays, leaf 0: no 'variable'": ("leaves", 0, {"distribution": "categorical"}),
    "arrays: 'factored': expected integers from 0 to 0, found 1": ("factored", 0, 1),
    "arrays: 'rows': expected 1, found 0": ("rows", []),
    "arrays, rows 0: expected a list for each of": ("rows", 0, []),
    "arrays, rows 0: '0': expected integers from 0 to": ("rows", 0, 0, 0, 50),
    "template, arrays, kind: expected integers, found [0.5]": ("kind", {"differences": [0.5]}),
    "arrays: 'kind' is too large a number": ("kind", {"differences": [2**63]}),
    "arrays, kind: unknown key 'sums'": ("kind", {"sums": []}),
}


@pytest.mark.parametrize("message", WRONG_ARRAYS)
def test_wrong_arrays_are_refused(message: str, tmp_path: Path) -> None:
    path = Path(__file__).parent / "golden" / "models" / "arrays_factored.json.gz"
    raw = json.loads(gzip.decompress(path.read_bytes()))
    *keys, last, value = ("template", "arrays", *WRONG_ARRAYS[message])
    part = raw
    for key in keys:
        part = part[key]
    part[last] = value
    (tmp_path / "model.json").write_text(json.dumps(raw))
    with pytest.raises(ModelFileError) as caught:
        RSPMN.load(tmp_path / "model.json")
    assert message in str(caught.value)


@pytest.mark.parametrize("message", WRONG)
def test_wrong_files_are_refused(message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(WRONG[message])
    with pytest.raises(ModelFileError) as caught:
        RSPMN.load(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="cannot be read: No such file"):
        RSPMN.load(tmp_path / "none.json")
    with pytest.raises(ModelFileError, match="cannot be read: Is a directory"):
        RSPMN.load(tmp_path)
    with pytest.raises(ModelFileError, match="cannot be written: No such file"):
        paper_grid().save(tmp_path / "no" / "model.json")
    with pytest.raises(ModelFileError, match="cannot be written: Is a directory"):
        paper_grid().save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_save_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.json"
    path.write_text("the old one")
    path.chmod(0o640)

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        paper_grid().save(path)
    assert path.read_text() == "the old one"
    assert [p.name for p in tmp_path.iterdir()] == ["model.json"]
    monkeypatch.undo()
    paper_grid().save(path)
    assert path.stat().st_mode & 0o777 == 0o640
    (tmp_path / "link.json").symlink_to(path)
    files.write_atomically(tmp_path / "link.json", b"through the link")
    assert path.read_bytes() == b"through the link"
