"""Mutants of model files: changes that keep most of their structure, so that they reach far.

A mutant is made from the text of a model and a `random.Random`. Most are changed as JSON, at a
place that is drawn by its pattern first: that of nodes' weights is as likely as that of the
version, however many nodes there are. Some are changed as bytes.
"""

import copy
import gzip
import json
import math
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any

#: A place in a file: keys and indices, from the outside in.
Path = tuple[str | int, ...]

NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 2, 3, 7, 0.0, -0.0, 0.5, 1.0, 1.5, -3.7, 1e-9, 1e-12, 1e-300, 5e-324, 1e9, 1e12, 1e15,
    1e20, 1e150, 1e151, 1e300, -1e300, 1.7e308, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63), 10**30,
    10**400,
)  # fmt: skip
#: Those at which arithmetic ends: each number of each model is made each of them.
EXTREME = (0, -0.0, -1, 5e-324, 1e-300, 1e-12, 1e15, 1e150, 1.7e308, 2**63)
STRINGS = (
    "", " ", "\n", "\t", "0", "nan", "inf", "END", "true", "x", "a b", "x > 0", "x is missing",
    "next steps", "__class__", "'; drop table", "<script>", "é", "\u202e", "\ud800", "\x00", "😀",
    "row", "%s", "{0}", "x@1", "a" * 10_000, "é" * 5_000, "((((" * 50, "1e999", "-" * 300,
    "not " * 200,
)  # fmt: skip
OTHERS: tuple[Any, ...] = (
    None, True, False, [], {}, [[]], [None], {"end": True}, {"unknown": True}, {"end": False},
    {"": 0}, [0] * 50, [1.0], ["x"], [[1, 2], [3]], {"a": {"b": {"c": []}}},
)  # fmt: skip


class Seed:
    """A model file that mutants are made from."""

    def __init__(self, content: bytes) -> None:
        self.content, self.raw = content, json.loads(content)
        self.places: Places | None = Places(self.raw)

    def mutant(self, others: "list[Seed]", rng: Random) -> bytes:
        """Return a changed copy; `others` are models that parts may come from."""
        if rng.random() < 0.05:
            return _changed_bytes(self.content, rng)
        raw, places = json.loads(self.content), self.places
        for _ in range(1 + (rng.random() < 0.3) + (rng.random() < 0.1)):
            if not (raw and isinstance(raw, dict)):
                break
            rng.choice(CHANGES)(raw, places or Places(raw), others, rng)
            places = None
        text = json.dumps(raw, ensure_ascii=rng.random() < 0.5)
        return text.encode(errors="surrogatepass")


def with_extreme_numbers(seed: Seed) -> Iterator[Callable[[Seed], bytes]]:
    """Return changes: of each pattern one number, and all of its list, are made extreme."""
    assert seed.places is not None
    by_type = seed.places.by_type
    for pattern, paths in {**by_type.get(int, {}), **by_type.get(float, {})}.items():
        path = paths[len(paths) // 2]
        for new in EXTREME:
            yield partial(_with_numbers, [path], new)
            if pattern[-1] == -1:
                yield partial(_with_numbers, [p for p in paths if p[:-1] == path[:-1]], new)


def _with_numbers(paths: list[Path], new: float, seed: Seed) -> bytes:
    raw = json.loads(seed.content)
    for path in paths:
        _put(raw, path, new)
    return json.dumps(raw).encode()


def _changed_bytes(content: bytes, rng: Random) -> bytes:
    """Return a file that is cut, damaged, of another encoding, or compressed."""
    at = rng.randrange(len(content))
    match rng.randrange(9):
        case 0:
            return content[:at]
        case 1:
            return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
        case 2:
            return content[:at] + content[at + rng.randrange(1, 30) :]
        case 3:
            return content[:at] + content[rng.randrange(len(content)) :]
        case 4:
            return gzip.compress(content)[: rng.randrange(1, 60)]
        case 5:
            packed = bytearray(gzip.compress(content))
            packed[rng.randrange(len(packed))] ^= 1 << rng.randrange(8)
            return bytes(packed)
        case 6:
            return content.decode().encode(rng.choice(["utf-16", "utf-8-sig", "utf-32"]))
        case 7:
            key = rng.choice([b'"version": ', b'"nodes": ', b'"kind": "'])
            return content.replace(key, key + rng.choice([b"NaN, ", b"1e999", b"[" * 2000]), 1)
        case _:
            return gzip.compress(content.replace(b"1", b"1" * rng.choice([2, 400, 5000]), 1))


# ---- places ------------------------------------------------------------------------------


class Places:
    """All places of a model, by pattern: their keys, with one mark for all indices."""

    def __init__(self, raw: Any) -> None:
        self.by_pattern: dict[Path, list[Path]] = {}
        self.by_type: dict[type, dict[Path, list[Path]]] = {}
        waiting: list[tuple[Path, Path, Any]] = [((), (), raw)]
        for path, pattern, part in waiting:
            if path:
                self.by_pattern.setdefault(pattern, []).append(path)
                of_type = self.by_type.setdefault(type(part), {})
                of_type.setdefault(pattern, []).append(path)
            if isinstance(part, dict):
                kind = (str(part.get("kind", "")), str(part.get("distribution", "")))
                waiting += [((*path, key), (*pattern, *kind, key), part[key]) for key in part]
            elif isinstance(part, list):
                waiting += [((*path, k), (*pattern, -1), item) for k, item in enumerate(part)]
        self.all = [path for path, _, _ in waiting[1:]]

    def any(self, rng: Random) -> Path:
        """Return a place."""
        return _drawn(self.by_pattern, rng)

    def of(self, rng: Random, *kinds: type) -> Path | None:
        """Return a place that holds something of one of some types."""
        kinds = tuple(kind for kind in kinds if kind in self.by_type)
        return _drawn(self.by_type[rng.choice(kinds)], rng) if kinds else None

    def named(self, *names: str) -> list[Path]:
        """Return the places of keys, and of what is in lists of these."""
        return [p for p in self.all if p[-1] in names or (len(p) > 1 and p[-2] in names)]


def _drawn(places: dict[Path, list[Path]], rng: Random) -> Path:
    return rng.choice(places[rng.choice(list(places))])


def _at(raw: Any, path: Path) -> Any:
    for key in path:
        raw = raw[key]
    return raw


def _put(raw: Any, path: Path, value: Any) -> None:
    _at(raw, path[:-1])[path[-1]] = value


# ---- changes of JSON -------------------------------------------------------------------


def change_number(raw: Any, places: Places, _: list[Seed], rng: Random) -> None:
    """Make a number another one: extreme, or near to what it was."""
    if path := places.of(rng, int, float):
        old = max(-1e300, min(1e300, _at(raw, path)))  # what was changed before may be larger
        near = (old + 1, old - 1, -old, old * 2, old / 3, old * 1e-9, old * 1e9, str(old), int(old))
        _put(raw, path, rng.choice(NUMBERS if rng.random() < 0.5 else near))


def change_string(raw: Any, places: Places, _: list[Seed], rng: Random) -> None:
    """Make a string another one."""
    if path := places.of(rng, str):
        _put(raw, path, rng.choice(STRINGS))


def rename(raw: Any, places: Places, _: list[Seed], rng: Random) -> None:
    """Make a string another one wherever it is, so that the model stays whole."""
    if path := places.of(rng, str):
        old, new = _at(raw, path), rng.choice(STRINGS)
        for place in [p for paths in places.by_type[str].values() for p in paths]:
            if _at(raw, place) == old:
                _put(raw, place, new)


def revalue(raw: Any, places: Places, _: list[Seed], rng: Random) -> None:
    """Make a value of a variable or decision another one wherever it is."""
    if found := [p for p in places.named("values") if p[-1] != "values"]:
        old = _at(raw, rng.choice(found))
        new = rng.choice([*NUMBERS, *STRINGS, True, False, {"end": True}, {"unknown": True}])
        for place in [p for p in found if _at(raw, p) == old]:
            _put(raw, place, new)


def replace(raw: Any, places: Places, _: list[Seed], rng: Random) -> None:
    """Put something of any type in the place of something."""
    _put(raw, places.any(rng), copy.deepcopy(rng.choice([*OTHERS, *NUMBERS, *STRINGS])))


def move_mass(raw: Any, places: Places, _: list[Seed], rng: Random) -> None:
    """Move probability from one of several to another: all of it, or all but next to nothing."""
    found = [_at(raw, p) for p in places.named("weights", "probabilities", "share", "masses")]
    lists = [one for one in found if isinstance(one, list) and set(map(type, one)) == {float}]
    if lists:
        one = rng.choice(lists)
        a, b = rng.randrange(len(one)), rng.randrange(len(one))
        left = one[a] * rng.choice([0.0, 0.0, 0.5, 1e-9, 1e-16, 1e-300])
        one[a], one[b] = left, one[b] + one[a] - left


def rewire(raw: Any, places: Places, _: list[Seed], rng: Random) -> None:
    """Make an index of a node, root, interface node or outcome another one."""
    names = "children", "roots", "interface", "to", "untried_at", "beyond", "outcome", "factors"
    found = [path for path in places.named(*names) if type(_at(raw, path)) is int]
    if found:
        path = rng.choice(found)
        old = _at(raw, path)
        other = rng.randrange(max(1, old + 5))
        _put(raw, path, rng.choice([old + 1, old - 1, 0, other, other, -1, 10**6]))


def change_list(raw: Any, places: Places, _: list[Seed], rng: Random) -> None:
    """Leave out, repeat, swap or reverse what a list holds."""
    path = places.of(rng, list)
    found = _at(raw, path) if path else []
    if found:
        k, j = rng.randrange(len(found)), rng.randrange(len(found))
        match rng.randrange(6):
            case 0:
                found.pop(k)
            case 1:
                found.insert(j, copy.deepcopy(found[k]))
            case 2:
                found[k], found[j] = found[j], found[k]
            case 3:
                found.reverse()
            case 4:
                found.clear()
            case _:
                found *= rng.choice([2, 3, 100])


def change_object(raw: Any, places: Places, _: list[Seed], rng: Random) -> None:
    """Leave out a key of an object, add one, or give its value to another."""
    path = places.of(rng, dict)
    found = _at(raw, path) if path and rng.random() < 0.8 else raw
    if found:
        key = rng.choice(list(found))
        match rng.randrange(3):
            case 0:
                found.pop(key)
            case 1:
                found[rng.choice(STRINGS)] = copy.deepcopy(rng.choice(OTHERS))
            case _:
                found[rng.choice(list(found))] = copy.deepcopy(found[key])


def splice(raw: Any, places: Places, others: list[Seed], rng: Random) -> None:
    """Put a part of this or another model in the place of a part."""
    path, other, of_other = places.any(rng), raw, places
    if rng.random() < 0.5:
        donor = rng.choice(others)
        other, of_other = donor.raw, donor.places or Places(donor.raw)
    alike = [p for p in of_other.all if p[-1] == path[-1]]
    source = rng.choice(alike) if alike and rng.random() < 0.8 else of_other.any(rng)
    _put(raw, path, copy.deepcopy(_at(other, source)))


def other_head(raw: Any, _: Places, __: list[Seed], rng: Random) -> None:
    """Change the head of the file."""
    key = rng.choice(["version", "kind", "format"])
    raw[key] = rng.choice([*range(-1, 12), "rspmn", "spmn", 1.0, math.pi, True])


def scale_utilities(raw: Any, places: Places, _: list[Seed], rng: Random) -> None:
    """Make all utilities larger or smaller: the model stays valid as long as they are finite."""
    factor = rng.choice([1e-300, 1e-150, 1e-12, 1e12, 1e140, -1.0, 0.0])
    for path in places.named("mean"):
        if type(_at(raw, path)) in (int, float):
            _put(raw, path, max(-1e300, min(1e300, _at(raw, path))) * factor)


Change = Callable[[Any, Places, list[Seed], Random], None]
CHANGES: tuple[Change, ...] = (
    change_number, change_number, change_number, change_string, rename, revalue, replace, move_mass,
    move_mass, rewire, rewire, change_list, change_list, change_object, splice, splice, other_head,
    scale_utilities,
)  # fmt: skip
