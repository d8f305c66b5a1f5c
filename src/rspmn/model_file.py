"""Model files: versioned JSON that people can read. No pickle.

{"format": "rspmn", "version": 1, "kind": "rspmn", "schema": …, "top": …, "template": …}

Version 2 adds decisions that were never tried. Models without them are written as version 1.
"""

import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from rspmn.circuit import Network
from rspmn.circuit.fields import Fields, located
from rspmn.circuit.json import dumps, network_from_json, network_to_json
from rspmn.errors import ModelFileError, did_you_mean
from rspmn.files import write_atomically
from rspmn.model import RSPMN, Untried
from rspmn.schema import Schema
from rspmn.spmn import SPMN

FORMAT = "rspmn"
#: Increased whenever an older rspmn could misread a newer file.
VERSION = 2


def save(model: RSPMN | SPMN, path: str | Path) -> None:
    """Write a model, gzipped if the name ends in .gz; atomically."""
    untried = model.untried if isinstance(model, RSPMN) else None
    head = {"format": dumps(FORMAT), "version": dumps(1 if untried is None else 2)}
    schema = dumps(model.schema.to_dict())
    if isinstance(model, RSPMN):
        parts = {
            "kind": dumps("rspmn"),
            "schema": schema,
            "top": network_to_json(model.top),
            "template": network_to_json(model.template),
            "visits": dumps(model.visits),
        }
        if untried is not None:
            parts["untried"] = network_to_json(untried.network)
            parts["untried_at"] = dumps(untried.at)
    else:
        background = model.background
        parts = {
            "kind": dumps("spmn"),
            "schema": schema,
            "network": network_to_json(model.network),
            "background": dumps(None) if background is None else network_to_json(background),
            "rows": dumps(model.rows),
        }
    lines = [f"{dumps(key)}: {part}" for key, part in (head | parts).items()]
    content = ("{\n" + ",\n".join(lines) + "\n}\n").encode()
    if str(path).endswith(".gz"):
        content = gzip.compress(content, mtime=0)  # no time stamp: same model, same bytes
    try:
        write_atomically(path, content)
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be written: {error.strerror}") from None


def load(path: str | Path) -> RSPMN | SPMN:
    """Read a model of either kind; an error says what is not valid, and where in the file."""
    where = str(path)
    fields = Fields(_parse(_read(path), where), where)
    _check_envelope(fields)
    kind = fields.text("kind")
    if kind not in _KINDS:
        raise ModelFileError(
            f"{where}: unknown kind of model {kind!r}: {did_you_mean(kind, _KINDS)}"
        )
    fields.only(["format", "version", "kind", "schema", *_KINDS[kind]])
    with located(where):
        schema = Schema.from_dict(Fields(fields.raw.get("schema"), f"{where}, schema").raw)
        return _rspmn(fields, schema) if kind == "rspmn" else _spmn(fields, schema)


def load_rspmn(path: str | Path) -> RSPMN:
    """Read a recurrent model."""
    model = load(path)
    if not isinstance(model, RSPMN):
        raise ModelFileError(f"{path}: expected a model of kind 'rspmn', found 'spmn'")
    return model


def load_spmn(path: str | Path) -> SPMN:
    """Read a model of a single decision problem."""
    model = load(path)
    if not isinstance(model, SPMN):
        raise ModelFileError(f"{path}: expected a model of kind 'spmn', found 'rspmn'")
    return model


#: The parts of each kind of model.
_KINDS = {
    "rspmn": ["top", "template", "visits", "untried", "untried_at"],
    "spmn": ["network", "background", "rows"],
}


def _rspmn(fields: Fields, schema: Schema) -> RSPMN:
    untried = None
    if "untried" in fields.raw:
        at = fields.numbers("untried_at")
        if not all(number.is_integer() for number in at):
            raise ModelFileError(f"{fields.where}, untried_at: expected whole numbers, found {at}")
        untried = Untried(_network(fields, "untried"), tuple(map(int, at)))
    top, template = _network(fields, "top"), _network(fields, "template")
    return RSPMN(schema, top, template, fields.numbers("visits"), untried)


def _spmn(fields: Fields, schema: Schema) -> SPMN:
    no_background = fields.raw.get("background") is None
    return SPMN(
        schema,
        _network(fields, "network"),
        None if no_background else _network(fields, "background"),
        fields.number("rows"),
    )


def _network(fields: Fields, part: str) -> Network:
    return network_from_json(fields.raw.get(part), f"{fields.where}, {part}")


def _read(path: str | Path) -> bytes:
    try:
        content = Path(path).read_bytes()
        return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ModelFileError(f"{path}: a damaged gzip file: {error}") from None
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # a name that no file can have
        raise ModelFileError(f"{path!r}: cannot be read: {error}") from None


def _parse(content: bytes, where: str) -> object:
    def refuse(word: str) -> NoReturn:
        raise ModelFileError(f"{where}: expected finite numbers, found {word}")

    try:
        return json.loads(
            content.decode(), parse_constant=refuse, object_pairs_hook=_refuse_duplicates(where)
        )
    except UnicodeDecodeError as error:
        raise ModelFileError(
            f"{where}: not a model file: not UTF-8 text (byte {error.start})"
        ) from None
    except json.JSONDecodeError as error:
        raise ModelFileError(
            f"{where}: not a model file: {error.msg} (line {error.lineno}, column {error.colno})"
        ) from None
    except RecursionError:
        raise ModelFileError(f"{where}: not a model file: nested too deeply") from None
    except ModelFileError:
        raise
    except ValueError as error:  # an integer of thousands of digits
        raise ModelFileError(f"{where}: not a model file: {error}") from None


def _refuse_duplicates(where: str) -> Callable[[list[tuple[str, object]]], dict[str, object]]:
    def collect(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            again = next(key for i, (key, _) in enumerate(pairs) if key in dict(pairs[:i]))
            raise ModelFileError(f"{where}: duplicate key {again!r} in an object")
        return found

    return collect


def _check_envelope(fields: Fields) -> None:
    if fields.raw.get("format") != FORMAT:
        raise ModelFileError(f'{fields.where}: not a model file: no "format": "{FORMAT}"')
    version = fields.integer("version")
    if version > VERSION:
        raise ModelFileError(
            f"{fields.where}: format version {version} is newer than this rspmn reads "
            f"(up to {VERSION}): upgrade rspmn"
        )
    if version < 1:
        raise ModelFileError(f"{fields.where}: there is no format version {version}")
