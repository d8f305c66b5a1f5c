"""Model files: versioned JSON that people can read. No pickle.

{"format": "rspmn", "version": 14, "kind": "rspmn", "schema": …, "top": …, "template": …}

Files of older versions lack parts that came later, and can be read: 2 decisions that were never
tried; 3 laws, and where decisions were never taken; 4 counts behind the weights of S_L; 5 variables
that were set aside; 6 factored latents; 7 counts behind soft boxes; 8 interface nodes beyond the
log; 9 shared utilities; 10 networks as arrays, lists as differences, leaves of moves; 11 ranges of
rewards; 12 logged steps of soft boxes, and which decisions never tried were avoided; 13 held-out
rows; 14 what the logger does, and when the longest episodes ended.
"""

import gzip
import io
import json
import zlib
from collections.abc import Callable
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any, NoReturn

from rspmn.availability import NeverTaken
from rspmn.behaviour import UNKNOWN_BEHAVIOUR, Behaviour, DecisionTree, Given
from rspmn.circuit import Network
from rspmn.circuit.fields import Fields, compact, located
from rspmn.circuit.json import dumps, network_from_json, network_to_json
from rspmn.errors import ModelFileError, did_you_mean
from rspmn.files import write_atomically
from rspmn.model import RSPMN, Untried
from rspmn.schema import Schema
from rspmn.spmn import SPMN
from rspmn.successor_counts import (
    HeldOutRows,
    SharedFactors,
    SharedUtilities,
    SoftCounts,
    StepSample,
    SuccessorCounts,
)
from rspmn.values import Value, as_value

FORMAT = "rspmn"
#: Increased whenever an older rspmn could misread a newer file.
VERSION = 14
#: Lists and records that older versions of the format do not have; they are left out if empty.
OPTIONAL = "utilities", "parameter", "going", "ending", "jumps", "sample", "held_out"
#: A gzip file may hold so many bytes, or so many times its own: models are packed 5 to 20 times.
LARGEST_PACKED, MOST_PACKED = 2**26, 100
#: Records of logged steps.
Logged = StepSample | HeldOutRows


def save(model: RSPMN | SPMN, path: str | Path) -> None:
    """Write a model, gzipped if the name ends in .gz; atomically."""
    parts = {
        "format": dumps(FORMAT),
        "version": dumps(VERSION),
        "kind": dumps("rspmn" if isinstance(model, RSPMN) else "spmn"),
        "schema": dumps(model.schema.to_dict()),
        **(_parts_of_rspmn(model) if isinstance(model, RSPMN) else _parts_of_spmn(model)),
    }
    lines = [f"{dumps(key)}: {part}" for key, part in parts.items()]
    content = ("{\n" + ",\n".join(lines) + "\n}\n").encode()
    if str(path).endswith(".gz"):
        # No time stamp: same model, same bytes. Level 9 takes ten times as long for a tenth less.
        content = gzip.compress(content, 6, mtime=0)
    write_atomically(path, content)


def _parts_of_rspmn(model: RSPMN) -> dict[str, str]:
    """Return the parts of a recurrent model as JSON; those that it does not have are left out."""
    parts = {
        "top": network_to_json(model.top),
        "template": network_to_json(model.template),
        "visits": dumps(model.visits),
    }
    for name, untried in (("expected", model.untried), ("avoided", model.avoided)):
        if untried is not None:
            parts[name] = network_to_json(untried.network)
            parts[f"{name}_at"] = dumps(compact(untried.at))
    for name, counts in (("counts", model.counts), ("soft_counts", model.soft_counts)):
        if counts is not None:
            parts[name] = dumps(_fields_of(counts))
    for name, listed in (("set_aside", model.set_aside), ("beyond", compact(model.beyond))):
        if listed:
            parts[name] = dumps(listed)
    if model.last_end:
        parts["last_end"] = dumps(model.last_end)
    return parts | _logger_part(model)


def _parts_of_spmn(model: SPMN) -> dict[str, str]:
    """Return the parts of a model of a single decision problem as JSON."""
    background = model.background
    return {
        "network": network_to_json(model.network),
        "background": dumps(None) if background is None else network_to_json(background),
        "rows": dumps(model.rows),
        **_logger_part(model),
        **({"usual": dumps(model.usual)} if model.usual else {}),
        **({"earned": dumps(model.earned)} if model.earned else {}),
        **({} if model.held_out is None else {"held_out": dumps(_fields_of(model.held_out))}),
    }


def _logger_part(model: RSPMN | SPMN) -> dict[str, str]:
    """Return what the logger does, and where decisions were never taken; nothing of neither."""
    never = [dumps([n.decision, n.value, n.variable, n.at, n.expected]) for n in model.never_taken]
    trees = [
        dumps({**_fields_of(tree), "given": [*map(_fields_of, tree.given)]})
        for tree in model.behaviour.trees
    ]
    parts = {"never_taken": never, "behaviour": trees}
    return {name: "[\n" + ",\n".join(rows) + "\n]" for name, rows in parts.items() if rows}


def _fields_of(
    record: SuccessorCounts
    | SharedFactors
    | SharedUtilities
    | SoftCounts
    | Logged
    | DecisionTree
    | Given,
) -> dict[str, object]:
    """Return what a record holds. `asdict` would copy its long tuples, number by number."""
    found = {field.name: getattr(record, field.name) for field in dataclass_fields(record)}
    found |= {name: compact(numbers) for name, numbers in _integers_of(record).items()}
    for name in OPTIONAL:
        if name in found and not found[name]:
            del found[name]
    parts = SharedFactors | SharedUtilities | Logged
    return {n: _fields_of(v) if isinstance(v, parts) else v for n, v in found.items()}


def _integers_of(record: object) -> dict[str, tuple[int, ...]]:
    """Return the lists of integers of a record; none of None."""
    named = () if record is None else dataclass_fields(record)  # type: ignore[arg-type]
    return {f.name: getattr(record, f.name) for f in named if f.type == tuple[int, ...]}


def load(path: str | Path) -> RSPMN | SPMN:
    """Read a model of either kind; an error names what is invalid, and where in the file."""
    where = str(path)
    fields = Fields(_parse(_read(path), where), where)
    _check_envelope(fields)
    kind = fields.text("kind")
    if kind not in _KINDS:
        raise ModelFileError(
            f"{where}: unknown kind of model {kind!r}: {did_you_mean(kind, _KINDS)}"
        )
    fields.only(["format", "version", "kind", "schema", *_KINDS[kind].split()])
    with located(where):
        schema = Schema.from_dict(Fields(fields.raw.get("schema"), f"{where}, schema").raw)
        return _rspmn(fields, schema) if kind == "rspmn" else _spmn(fields, schema)


def load_rspmn(path: str | Path) -> RSPMN:
    """Read a recurrent model."""
    model = load(path)
    if not isinstance(model, RSPMN):
        raise ModelFileError(f"{path}: a model of single decisions: this needs one of episodes")
    return model


def load_spmn(path: str | Path) -> SPMN:
    """Read a model of a single decision problem."""
    model = load(path)
    if not isinstance(model, SPMN):
        raise ModelFileError(f"{path}: a model of episodes: this needs one of single decisions")
    return model


#: The parts of each kind of model.
_KINDS = {
    "rspmn": "top template visits untried untried_at expected expected_at avoided avoided_at "
    "counts soft_counts set_aside beyond never_taken behaviour "
    "last_end",
    "spmn": "network background rows never_taken behaviour usual earned held_out",
}


def _rspmn(fields: Fields, schema: Schema) -> RSPMN:
    untried, avoided, unasked = (
        Untried(_network(fields, name), _whole(fields, f"{name}_at"))
        if name in fields.raw
        else None
        for name in ("expected", "avoided", "untried")
    )
    avoided = avoided or unasked  # before version 12, what was never tried was not offered
    top, template = _network(fields, "top"), _network(fields, "template")
    visits, never = fields.numbers("visits"), _never_taken(fields)
    aside = fields.texts("set_aside") if "set_aside" in fields.raw else ()
    counts, soft = _counts(fields), _soft_counts(fields)
    beyond = _whole(fields, "beyond") if "beyond" in fields.raw else ()
    return RSPMN(
        schema, top, template, visits, untried, never, counts, aside, soft, beyond, avoided,
        _behaviour(fields), fields.integer("last_end") if "last_end" in fields.raw else 0,
    )  # fmt: skip


def _whole(fields: Fields, name: str) -> tuple[int, ...]:
    """Read a list of whole numbers."""
    found = fields.numbers(name)
    if not all(number.is_integer() for number in found):
        raise ModelFileError(f"{fields.where}, {name}: expected whole numbers, found {found}")
    return tuple(map(int, found))


def _soft_counts(fields: Fields) -> SoftCounts | None:
    """Read the counts behind soft boxes."""
    if "soft_counts" not in fields.raw:
        return None
    part = Fields(fields.raw["soft_counts"], f"{fields.where}, soft_counts")
    sample = None
    if "sample" in part.raw:
        inner = Fields(part.raw["sample"], f"{part.where}, sample")
        sample = StepSample(**_numbers(StepSample, inner))
    return SoftCounts(**_numbers(SoftCounts, part), sample=sample)


def _counts(fields: Fields) -> SuccessorCounts | None:
    """Read the counts behind the weights of S_L."""
    if "counts" not in fields.raw:
        return None
    part = Fields(fields.raw["counts"], f"{fields.where}, counts")
    factors = utilities = None
    if part.raw.get("factors") is not None:
        inner = Fields(part.raw["factors"], f"{part.where}, factors")
        factors = SharedFactors(**_numbers(SharedFactors, inner))
    if "utilities" in part.raw:
        inner = Fields(part.raw["utilities"], f"{part.where}, utilities")
        utilities = SharedUtilities(**_numbers(SharedUtilities, inner))
    return SuccessorCounts(
        **_numbers(SuccessorCounts, part), factors=factors, utilities=utilities,
        held_out=_held_out(part),
    )  # fmt: skip


def _held_out(fields: Fields) -> HeldOutRows | None:
    """Read single decisions that were held out."""
    if "held_out" not in fields.raw:
        return None
    inner = Fields(fields.raw["held_out"], f"{fields.where}, held_out")
    return HeldOutRows(**_numbers(HeldOutRows, inner))


def _numbers(kind: type, fields: Fields) -> dict[str, Any]:
    """Read the fields of a dataclass that are numbers or lists of numbers."""
    parts = dataclass_fields(kind)
    fields.only([part.name for part in parts])
    read: dict[object, Callable[[str], object]] = {
        int: fields.integer, float: fields.number, tuple[int, ...]: fields.integers,
        tuple[float, ...]: fields.numbers,
    }  # fmt: skip
    given = [part for part in parts if part.name in fields.raw or part.name not in OPTIONAL]
    return {part.name: read[part.type](part.name) for part in given if part.type in read}


def _never_taken(fields: Fields) -> tuple[NeverTaken, ...]:
    """Read where decisions were never taken."""
    if "never_taken" not in fields.raw:
        return ()
    found = []
    for row in fields.array("never_taken"):
        match row:
            case [str(decision), value, str(variable), at, int() | float() as steps]:
                one, other = (as_value(v, "never_taken", ModelFileError) for v in (value, at))
                expected = Fields({"steps": steps}, f"{fields.where}, never_taken").number("steps")
                found.append(NeverTaken(decision, one, variable, other, expected))
            case _:
                raise ModelFileError(
                    f"{fields.where}, never_taken: expected a decision, its value, a variable, its "
                    f"value and a number, found {row!r}"
                )
    return tuple(found)


def _behaviour(fields: Fields) -> Behaviour:
    """Read what the logger does."""
    if "behaviour" not in fields.raw:
        return UNKNOWN_BEHAVIOUR
    trees = []
    for k, raw in enumerate(fields.array("behaviour")):
        part = Fields(raw, f"{fields.where}, behaviour, tree {k}")
        given = []
        for one in part.array("given"):
            each = Fields(one, f"{part.where}, given", ["name", "values", "borders"])
            given.append(Given(each.text("name"), _values(each), each.numbers("borders")))
        lists = _numbers(DecisionTree, part)
        trees.append(DecisionTree(part.text("decision"), _values(part), tuple(given), **lists))
    return Behaviour(tuple(trees))


def _values(fields: Fields) -> tuple[Value, ...]:
    """Read a list of values."""
    return tuple(as_value(v, f"{fields.where}, values", ModelFileError)
                 for v in fields.array("values"))  # fmt: skip


def _spmn(fields: Fields, schema: Schema) -> SPMN:
    no_background = fields.raw.get("background") is None
    return SPMN(
        schema,
        _network(fields, "network"),
        None if no_background else _network(fields, "background"),
        fields.number("rows"),
        _never_taken(fields),
        fields.numbers("usual") if "usual" in fields.raw else (),
        fields.numbers("earned") if "earned" in fields.raw else (),
        _held_out(fields),
        _behaviour(fields),
    )


def _network(fields: Fields, part: str) -> Network:
    return network_from_json(fields.raw.get(part), f"{fields.where}, {part}")


def _read(path: str | Path) -> bytes:
    try:
        content = Path(path).read_bytes()
        return _decompressed(content, path) if content[:2] == b"\x1f\x8b" else content
    except ModelFileError:
        raise
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ModelFileError(f"{path}: a damaged gzip file: {error}") from None
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # a name that no file can have
        raise ModelFileError(f"{path!r}: cannot be read: {error}") from None


def _decompressed(content: bytes, path: str | Path) -> bytes:
    """Return what a gzip file holds, but not what fills the memory."""
    most = max(LARGEST_PACKED, MOST_PACKED * len(content))
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        found = file.read(most + 1)
    if len(found) > most:
        raise ModelFileError(
            f"{path}: {len(content)} bytes that unpack to more than {most}: if this is a model, "
            "unpack it first"
        )
    return found


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
