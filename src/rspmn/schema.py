"""The schema: variables, their kinds, and the partial order P≺ of one time step.

Sec. 2: I0 ≺ D1 ≺ I1 ≺ D2 ≺ … ≺ Dm ≺ Im, then the utility U.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import tomli_w

from rspmn.errors import SchemaError, did_you_mean
from rspmn.files import write_atomically
from rspmn.values import is_text


class Kind(StrEnum):
    """What sort of values a variable takes."""

    CATEGORICAL = "categorical"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    CONTINUOUS = "continuous"


@dataclass(frozen=True, init=False)
class Schema:
    """The variables of one time step and the order in which they become known.

    Parameters
    ----------
    order
        Groups of names, first known first. A decision is a group of its own; every
        other group is an information set. Sets may be empty or left out, and sets with
        no decision between them are one set.
    decisions
        Which of the names are decisions.
    utility
        The reward. It comes last by itself and is not part of `order`.
    kinds
        `{"x": "integer"}`: what is known of the variables' kinds. The rest is inferred
        from data.

    >>> schema = Schema(order=[["x", "y"], ["action"]], decisions=["action"], utility="reward")
    >>> schema.information_sets
    (('x', 'y'), ())
    >>> schema.variables
    ('x', 'y', 'action', 'reward')
    """

    information_sets: tuple[tuple[str, ...], ...]  # I0 … Im
    decisions: tuple[str, ...]  # D1 … Dm, in order
    utility: str
    known_kinds: tuple[tuple[str, Kind], ...]  # in the order of the variables

    def __init__(
        self,
        order: Iterable[Iterable[str]],
        decisions: Iterable[str],
        utility: str,
        kinds: Mapping[str, Kind | str] | None = None,
    ) -> None:
        groups: list[Sequence[str]] = [g if isinstance(g, str) else list(g) for g in order]
        decisions = decisions if isinstance(decisions, str) else list(decisions)
        _check_names(groups, decisions, utility)
        sets: list[tuple[str, ...]] = [()]
        made: list[str] = []
        for group in groups:
            if len(group) == 1 and group[0] in decisions:
                made.append(group[0])
                sets.append(())
            else:
                sets[-1] += tuple(group)
        named = [name for group in groups for name in group] + [utility]
        object.__setattr__(self, "information_sets", tuple(sets))
        object.__setattr__(self, "decisions", tuple(made))
        object.__setattr__(self, "utility", utility)
        object.__setattr__(self, "known_kinds", _check_kinds(kinds or {}, named, made, utility))

    def __repr__(self) -> str:
        kinds = {name: str(kind) for name, kind in self.known_kinds}
        return (
            f"Schema({[list(group) for group in self.order]}, decisions={list(self.decisions)}, "
            f"utility={self.utility!r}, kinds={kinds})"
        )

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The kind of each variable that is known."""
        return MappingProxyType(dict(self.known_kinds))

    @property
    def order(self) -> tuple[tuple[str, ...], ...]:
        """The groups in order: information sets that hold something, and decisions."""
        groups = [self.information_sets[0]]
        for decision, after in zip(self.decisions, self.information_sets[1:], strict=True):
            groups += [(decision,), after]
        return tuple(group for group in groups if group)

    @property
    def state_variables(self) -> tuple[str, ...]:
        """X1 … Xn: every variable that is neither decided nor the utility."""
        return tuple(name for group in self.information_sets for name in group)

    @property
    def variables(self) -> tuple[str, ...]:
        """Everything, in order, the utility last: the columns of one step τ."""
        return (*(name for group in self.order for name in group), self.utility)

    def known_before(self, decision: str) -> tuple[str, ...]:
        """Name what has been seen and decided when `decision` is made.

        >>> s = Schema([["age"], ["test"], ["result"], ["treat"]], ["test", "treat"], "health")
        >>> s.known_before("treat")
        ('age', 'test', 'result')
        """
        if decision not in self.decisions:
            raise SchemaError(
                f"{decision!r} is not a decision: {did_you_mean(decision, self.decisions)}"
            )
        return self.variables[: self.variables.index(decision)]

    def with_kinds(self, kinds: Mapping[str, Kind | str]) -> "Schema":
        """Return the same schema with more kinds known."""
        return Schema(self.order, self.decisions, self.utility, {**self.kinds, **kinds})

    # ---- files -------------------------------------------------------------------

    @classmethod
    def from_dict(cls, raw: Mapping[str, object], where: str = "schema") -> "Schema":
        """Read the plain form, `{"order": …, "decisions": …, "utility": …, "kinds": …}`."""
        valid = ["order", "decisions", "utility", "kinds"]
        for key in raw:
            if key not in valid:
                raise SchemaError(f"{where}: unknown key {key!r}: {did_you_mean(key, valid)}")
        for key in valid[:3]:
            if key not in raw:
                raise SchemaError(f"{where}: no {key!r}: a schema needs order, decisions, utility")
        order, decisions, kinds = raw["order"], raw["decisions"], raw.get("kinds", {})
        utility = raw["utility"]
        if not isinstance(order, list):
            raise SchemaError(f"{where}: 'order' must be a list of lists of names, found {order!r}")
        if not isinstance(decisions, list):
            raise SchemaError(f"{where}: 'decisions' must be a list of names, found {decisions!r}")
        if not isinstance(utility, str):
            raise SchemaError(f"{where}: 'utility' must be a name, found {utility!r}")
        if not isinstance(kinds, Mapping):
            raise SchemaError(f"{where}: 'kinds' must map names to kinds, found {kinds!r}")
        for group in order:
            if not isinstance(group, list):
                raise SchemaError(
                    f"{where}: 'order' must be a list of lists, found {group!r} in it"
                )
        try:
            return cls(order, decisions, utility, kinds)
        except SchemaError as error:
            raise SchemaError(f"{where}: {error}") from None

    def to_dict(self) -> dict[str, object]:
        """Return the plain form that `from_dict` reads."""
        plain: dict[str, object] = {
            "order": [list(group) for group in self.order],
            "decisions": list(self.decisions),
            "utility": self.utility,
        }
        if self.kinds:
            plain["kinds"] = {name: str(kind) for name, kind in self.kinds.items()}
        return plain

    @classmethod
    def load(cls, path: str | Path) -> "Schema":
        """Read a `schema.toml`; what it says of the log besides, `LogColumns.load` reads."""
        raw = _read_toml(path)
        LogColumns.from_dict(raw.pop("log", {}), where=str(path))
        return cls.from_dict(raw, where=str(path))

    def save(self, path: str | Path) -> None:
        """Write a `schema.toml`, whole or not at all."""
        try:
            write_atomically(path, tomli_w.dumps(self.to_dict()).encode())
        except OSError as error:
            raise SchemaError(f"{path}: cannot be written: {error.strerror}") from None


@dataclass(frozen=True)
class LogColumns:
    """What columns of a log are called that are no variables: `[log]` in a schema.toml."""

    episode: str | None = None
    time: str | None = None
    terminated: str | None = None

    @classmethod
    def load(cls, path: str | Path) -> "LogColumns":
        """Read the table `[log]` of a `schema.toml`, if it has one."""
        return cls.from_dict(_read_toml(path).get("log", {}), where=str(path))

    @classmethod
    def from_dict(cls, raw: object, where: str = "schema") -> "LogColumns":
        """Read the plain form, `{"episode": …, "time": …, "terminated": …}`, all of it optional."""
        if not isinstance(raw, Mapping):
            raise SchemaError(f"{where}: 'log' must be a table of names of columns, found {raw!r}")
        valid = [each.name for each in fields(cls)]
        for key, name in raw.items():
            if key not in valid:
                raise SchemaError(f"{where}: unknown key {key!r}: {did_you_mean(key, valid)}")
            if not isinstance(name, str) or not name:
                raise SchemaError(f"{where}: 'log': {key} must be a column's name, found {name!r}")
        return cls(**raw)


def _read_toml(path: str | Path) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise SchemaError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SchemaError(f"{path}: not a text file in UTF-8 (byte {error.start})") from None
    except tomllib.TOMLDecodeError as error:
        raise SchemaError(f"{path}: not a TOML file: {error}") from None
    except RecursionError:
        raise SchemaError(f"{path}: not a schema: nested too deeply") from None


def _check_names(order: Sequence[Sequence[str]], decisions: Sequence[str], utility: str) -> None:
    if not isinstance(utility, str) or not utility or not is_text(utility):
        raise SchemaError("no utility: name the column that holds the reward, utility='reward'")
    if isinstance(decisions, str):
        raise SchemaError(f"decisions: expected a list of names, found {decisions!r}")
    seen: set[str] = set()
    for group in order:
        if isinstance(group, str):
            raise SchemaError(f"order: expected lists of names, found {group!r}: write [{group!r}]")
        for name in group:
            if not isinstance(name, str) or not name or not is_text(name):
                raise SchemaError(f"order: expected names, found {name!r} in {list(group)}")
            if name in seen:
                raise SchemaError(f"order: {name!r} stands twice")
            if name == utility:
                raise SchemaError(
                    f"order: {name!r} is the utility, which comes last by itself: remove it"
                )
            seen.add(name)
        inside = [name for name in group if name in decisions]
        if inside and len(group) > 1:
            raise SchemaError(
                f"order: decision {inside[0]!r} stands inside the information set {list(group)}: "
                f"give it a group of its own, [{inside[0]!r}]"
            )
    for index, name in enumerate(decisions):
        if not isinstance(name, str):
            raise SchemaError(f"decisions: expected names, found {name!r}")
        if name not in seen:
            raise SchemaError(
                f"decision {name!r} is not in the order: {did_you_mean(name, sorted(seen))}"
            )
        if name in decisions[:index]:
            raise SchemaError(f"decisions: {name!r} stands twice")


def _check_kinds(
    kinds: Mapping[str, Kind | str], named: Iterable[str], decisions: Sequence[str], utility: str
) -> tuple[tuple[str, Kind], ...]:
    known = {}
    for name in (names := list(named)):
        if name in kinds:
            known[name] = _kind(name, kinds[name])
    for name in kinds:
        if name not in names:
            raise SchemaError(f"kinds: unknown variable {name!r}: {did_you_mean(name, names)}")
    for name in decisions:
        if known.get(name) is Kind.CONTINUOUS:
            raise SchemaError(
                f"kinds: decision {name!r} is continuous, but a max node has one branch per value: "
                "bin it first"
            )
    if known.get(utility) is Kind.CATEGORICAL:
        raise SchemaError(f"kinds: utility {utility!r} is categorical, but it must be a number")
    return tuple(known.items())


def _kind(name: str, raw: object) -> Kind:
    try:
        return Kind(raw)  # type: ignore[arg-type]
    except ValueError:
        raise SchemaError(f"kinds: {name!r} is {raw!r}: {did_you_mean(raw, Kind)}") from None
