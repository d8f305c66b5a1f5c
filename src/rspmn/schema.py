"""The schema: variables, their kinds, and the partial order P≺ of one time step.

Sec. 2: I0 ≺ D1 ≺ I1 ≺ D2 ≺ … ≺ Dm ≺ Im, then the utility U.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Unpack

import tomli_w

from rspmn.availability import Available, Law, laws_of
from rspmn.display import table_html
from rspmn.errors import DataError, SchemaError, did_you_mean
from rspmn.expressions import Expression, is_computed, missing_of, summed
from rspmn.files import write_atomically
from rspmn.log_format import LogFormat, LogOptions
from rspmn.values import is_name

#: So many variables are listed in a message.
LISTED = 10

#: What a utility is computed from, see `Schema`: words with values; all that it can be.
Worths = Mapping[str, Mapping[str, float]]
Utility = str | Worths | Sequence[str | Worths]


class Kind(StrEnum):
    """The kind of values that a variable takes."""

    CATEGORICAL = "categorical"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    CONTINUOUS = "continuous"


@dataclass(frozen=True, init=False)
class Schema:
    """The variables of one time step and the order in which they are observed.

    Parameters
    ----------
    order
        Groups of names in the order in which they are observed. Each decision is a group of its
        own; every other group is an information set. Sets may be empty or left out, and sets
        without a decision between them are one set.
    decisions
        The names of the decisions.
    utility
        The reward. It always comes last and is not part of `order`. It is the name of a column, an
        expression of columns, "-cost", a list of these to add up, or a mapping from the values of a
        column to numbers, `{"status": {"cured": 100, "died": -100}}`. The name of a computed
        utility is its expression.
    kinds
        Kinds of variables, `{"x": "integer"}`. Others are inferred from data.
    log
        The format of the logs; by default `LogFormat()`. It is ignored when schemas are compared.
    available
        Conditions under which an action is available, `{"lift": "floor > 0"}`, on variables
        observed before it. With several decisions, by decision: `{"action": {"lift": "floor >
        0"}}`. Other actions are available everywhere.
    missing
        Variables whose absence is informative, `{"crp": "informative"}`, such as a laboratory test
        that was not ordered: "crp is missing" becomes a variable, observed together with "crp".
        Other missing values are unknown.

    Examples
    --------
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
    log: LogFormat = field(compare=False)
    laws: tuple[Law, ...]  # where decisions are available

    def __init__(
        self,
        order: Iterable[Iterable[str]],
        decisions: Iterable[str],
        utility: Utility,
        kinds: Mapping[str, Kind | str] | None = None,
        log: LogFormat | None = None,
        available: Available | None = None,
        missing: Mapping[str, str] | None = None,
    ) -> None:
        try:
            utility = summed(utility)
        except DataError as error:
            raise SchemaError(str(error)) from None
        groups: list[Sequence[str]] = [g if isinstance(g, str) else list(g) for g in order]
        decisions = decisions if isinstance(decisions, str) else list(decisions)
        _check_names(groups, decisions, utility)
        groups = _with_absence(groups, decisions, missing or {})
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
        object.__setattr__(self, "log", log or LogFormat())
        known = {name: self.known_before(name) for name in made}
        object.__setattr__(self, "laws", laws_of(available or {}, made, known))

    def _repr_html_(self) -> str:
        names = [*self.variables]
        roles = dict.fromkeys(self.decisions, "decision") | {self.utility: "utility"}
        group = {name: number for number, group in enumerate(self.order, 1) for name in group}
        return table_html({
            "known in turn": [group.get(name, len(self.order) + 1) for name in names],
            "variable": names,
            "role": [roles.get(name, "state") for name in names],
            "kind": [str(self.kinds.get(name) or "") for name in names],
        }, "Schema", most=len(names))  # fmt: skip

    def __repr__(self) -> str:
        kinds = {name: str(kind) for name, kind in self.known_kinds}
        return (
            f"Schema({[list(group) for group in self.order]}, decisions={list(self.decisions)}, "
            f"utility={self.utility!r}, kinds={kinds}"
            + (f", available={self.available})" if self.laws else ")")
        )

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The kind of each variable that is known."""
        return MappingProxyType(dict(self.known_kinds))

    @cached_property
    def order(self) -> tuple[tuple[str, ...], ...]:
        """The groups in order: information sets that hold something, and decisions."""
        groups = [self.information_sets[0]]
        for decision, after in zip(self.decisions, self.information_sets[1:], strict=True):
            groups += [(decision,), after]
        return tuple(group for group in groups if group)

    @cached_property
    def state_variables(self) -> tuple[str, ...]:
        """X1 … Xn: every variable that is neither decided nor the utility."""
        return tuple(name for group in self.information_sets for name in group)

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """Everything, in order, the utility last: the columns of one step τ."""
        return (*(name for group in self.order for name in group), self.utility)

    @cached_property
    def informative(self) -> Mapping[str, str]:
        """The variables whose absence is informative, and the variables that indicate it.

        >>> Schema([["crp"], ["a"]], ["a"], "u", missing={"crp": "informative"}).informative
        {'crp': 'crp is missing'}
        """
        names = self.state_variables
        return {name: absence for name in names if (absence := missing_of(name)) in names}

    @cached_property
    def computed(self) -> Mapping[str, Expression]:
        """The state variables that may be expressions of columns."""
        return {name: Expression.parse(name) for name in self.state_variables if is_computed(name)}

    @cached_property
    def about_log(self) -> frozenset[str]:
        """The columns of a log that are no variables: episode, time, and how episodes ended.

        >>> sorted(Schema([["time"], ["a"]], ["a"], "u").about_log)
        ['episode', 'terminated']
        """
        columns = {self.log.episode, self.log.time, self.log.flag} - {None, *self.variables}
        return frozenset(filter(None, columns))

    def known_before(self, decision: str) -> tuple[str, ...]:
        """Return the variables observed before `decision`, including earlier decisions.

        >>> s = Schema([["age"], ["test"], ["result"], ["treat"]], ["test", "treat"], "health")
        >>> s.known_before("treat")
        ('age', 'test', 'result')
        """
        if decision not in self.decisions:
            raise SchemaError(
                f"{decision!r} is not a decision: {did_you_mean(decision, self.decisions)}"
            )
        return self.variables[: self.variables.index(decision)]

    def check_decides(self, where: str = "") -> None:
        """Refuse a schema without decisions."""
        if not self.decisions:
            names = ", ".join(map(repr, self.state_variables[:LISTED])) or "none"
            raise SchemaError(
                f"{where}no decisions: expected at least one variable that can be chosen, in a "
                f"group of its own in 'order' and listed in 'decisions'; the variables are {names}"
            )

    def with_kinds(self, kinds: Mapping[str, Kind | str]) -> "Schema":
        """Return the same schema with more kinds known."""
        known = {**self.kinds, **kinds}
        return Schema(self.order, self.decisions, self.utility, known, self.log, self.available)

    def with_log(self, **options: Unpack[LogOptions]) -> "Schema":
        """Return the same schema for logs of another format: fields of `LogFormat` by name.

        >>> schema = Schema([["x"], ["a"]], ["a"], "u").with_log(episode="patient")
        >>> schema.with_log(terminated="cured").log
        LogFormat(episode='patient', terminated='cured')
        """
        if not options:
            return self
        log = self.log.override(**options)
        return Schema(self.order, self.decisions, self.utility, self.kinds, log, self.available)

    @property
    def available(self) -> dict[str, dict[str, str]]:
        """The conditions of decisions, by decision and value."""
        found: dict[str, dict[str, str]] = {}
        for law in self.laws:
            found.setdefault(law.decision, {})[law.value] = law.condition
        return found

    # ---- files -------------------------------------------------------------------

    @classmethod
    def from_dict(cls, raw: Mapping[str, object], where: str = "schema") -> "Schema":
        """Read the plain form, `{"order": …, "decisions": …, "utility": …}`.

        `kinds`, `available`, `missing` and `log` are optional.
        """
        valid = ["order", "decisions", "utility", "kinds", "available", "missing", "log"]
        for key in raw:
            if key not in valid:
                raise SchemaError(f"{where}: unknown key {key!r}: {did_you_mean(key, valid)}")
        for key in valid[:3]:
            if key not in raw:
                raise SchemaError(f"{where}: no {key!r}: a schema needs order, decisions, utility")
        order, decisions, kinds = raw["order"], raw["decisions"], raw.get("kinds", {})
        utility: Any = raw["utility"]
        if not isinstance(order, list):
            raise SchemaError(f"{where}: 'order' must be a list of lists of names, found {order!r}")
        if not isinstance(decisions, list):
            raise SchemaError(f"{where}: 'decisions' must be a list of names, found {decisions!r}")
        if not isinstance(kinds, Mapping):
            raise SchemaError(f"{where}: 'kinds' must map names to kinds, found {kinds!r}")
        for group in order:
            if not isinstance(group, list):
                raise SchemaError(
                    f"{where}: 'order' must be a list of lists, found {group!r} in it"
                )
        log = LogFormat.from_dict(raw.get("log", {}), where)
        available: Any = raw.get("available", {})
        missing: Any = raw.get("missing", {})
        try:
            return cls(order, decisions, utility, kinds, log, available, missing)
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
        if self.laws:
            one = len(self.decisions) == 1
            plain["available"] = self.available[self.decisions[0]] if one else self.available
        if log := self.log.to_dict():
            plain["log"] = log
        return plain

    @classmethod
    def load(cls, path: str | Path) -> "Schema":
        """Read a `schema.toml`, with the format of the log that it describes in `[log]`.

        It must name a decision: without one, there is nothing to ask a model.
        """
        schema = cls.from_dict(_read_toml(path), where=str(path))
        schema.check_decides(f"{path}: ")
        return schema

    def save(self, path: str | Path) -> None:
        """Write a `schema.toml` atomically."""
        write_atomically(path, tomli_w.dumps(self.to_dict()).encode(), SchemaError)


def schema_of_log(schema: object, options: LogOptions) -> Schema:
    """Return the schema of a log that is to be read: its format as the options change it."""
    if not isinstance(schema, Schema):
        raise SchemaError(
            f"expected a Schema, found {type(schema).__name__}: Schema.load reads a schema.toml"
        )
    return schema.with_log(**options)


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
    if not is_name(utility):
        raise SchemaError("no utility: name the column with the reward, utility='reward'")
    if isinstance(decisions, str):
        raise SchemaError(f"decisions: expected a list of names, found {decisions!r}")
    seen: set[str] = set()
    for group in order:
        if isinstance(group, str):
            raise SchemaError(f"order: expected lists of names, found {group!r}: write [{group!r}]")
        for name in group:
            if not is_name(name):
                raise SchemaError(f"order: expected names, found {name!r} in {list(group)}")
            if name in seen:
                raise SchemaError(f"order: {name!r} appears twice")
            if name == utility:
                raise SchemaError(
                    f"order: {name!r} is the utility, which comes last automatically: remove it"
                )
            seen.add(name)
        inside = [name for name in group if name in decisions]
        if inside and len(group) > 1:
            raise SchemaError(
                f"order: decision {inside[0]!r} is inside the information set {list(group)}: "
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
            raise SchemaError(f"decisions: {name!r} appears twice")


def _with_absence(
    groups: list[Sequence[str]], decisions: Sequence[str], missing: Mapping[str, str]
) -> list[Sequence[str]]:
    """Return the order with a variable beside each whose absence tells something."""
    if not isinstance(missing, Mapping):
        raise SchemaError(f"missing: expected names, {{'crp': 'informative'}}, found {missing!r}")
    names = [name for group in groups for name in group if name not in decisions]
    for name, meaning in missing.items():
        if name not in names:
            raise SchemaError(f"missing: unknown variable {name!r}: {did_you_mean(name, names)}")
        if meaning != "informative":
            raise SchemaError(
                f"missing: {name!r} is {meaning!r}: expected 'informative'; omit it if its "
                "absence is not informative"
            )
    added = {name: missing_of(name) for name in missing if missing_of(name) not in names}
    return [[*group, *(added[n] for n in group if n in added)] for group in groups]


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
