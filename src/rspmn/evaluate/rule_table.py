"""A policy as a table of rules: what to do where some state variables have some values.

Columns are state variables and all decisions. A blank cell of a state variable fits every value. A
cell may also be a condition on a number: "< 80", ">= 3". Of several rules that fit a state, the
first decides. Of states that no rule fits the table says nothing.

    map,lactate,treatment
    < 65,,vasopressor
    ,> 4,fluids
    ,,none
"""

import csv
import operator
import re
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from rspmn.data.columns import Column
from rspmn.data.tables import as_table, native_frame
from rspmn.errors import DataError, did_you_mean
from rspmn.evaluate.logged import Situations
from rspmn.evaluate.target_policies import AskedStates
from rspmn.schema import Kind
from rspmn.types import Array, Bools, Ints
from rspmn.values import Value, is_missing

#: A condition on a number.
CONDITION = re.compile(r"\s*(<=|>=|<|>)\s*(-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)\s*")
COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def is_rule_table(source: object) -> bool:
    """Return whether an object is a data frame, or a mapping of names to columns."""
    if isinstance(source, Mapping):
        return bool(source) and all(isinstance(cells, list) for cells in source.values())
    return not callable(source) and native_frame(source) is not None


class RuleTable:
    """The decisions of the first rule that fits a state.

    `source`: a CSV file, a data frame, or a mapping of names to lists.

    Examples
    --------
    >>> from rspmn.envs.frozen_lake import frozen_lake
    >>> from rspmn.evaluate import off_policy
    >>> from rspmn.learn import learn_rspmn
    >>> log = frozen_lake().generate(2000, 8, 0)
    >>> rules = {"cell": [14, None], "action": ["right", "down"]}
    >>> off_policy(learn_rspmn(log)[0], log, rules, horizon=8).coverage
    1.0
    """

    stationary = True

    def __init__(self, source: object) -> None:
        if isinstance(source, str | Path):
            self.name, self.columns = str(source), _read(source)
        else:
            table = as_table(source)
            self.name = "the table of rules"
            self.columns = {n: _plain(table.column(n)) for n in table.names}

    def probabilities(self, asked: AskedStates, t: int) -> Array:  # noqa: ARG002
        """Return 1 for the decision of the rule that fits, NaN where none does."""
        situations = asked.situations
        self._check(situations)
        rule = self.rule_of(situations)
        made = np.array([*self._decisions(situations), -2])[rule]
        found = np.zeros((situations.count, len(situations.decisions)))
        known = np.flatnonzero(made >= 0)
        found[known, made[known]] = 1.0
        found[made == -2] = np.nan
        return found

    def rule_of(self, situations: Situations) -> Ints:  # [S]
        """Return the number of the first rule that fits each state, -1 for none."""
        names = [n for n in self.columns if n not in situations.schema.decisions]
        found = np.full(situations.count, -1)
        for rule in range(len(self)):
            fits = found < 0
            for name in names:
                cell = self.columns[name][rule]
                if not _is_blank(cell):
                    fits &= _fits(cell, situations.columns[name])
            found[fits] = rule
        return found

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def _check(self, situations: Situations) -> None:
        schema = situations.schema
        valid = (*schema.information_sets[0], *schema.decisions)
        for name in self.columns:
            if name not in valid:
                raise DataError(f"{self.name}: column {name!r}: {did_you_mean(name, valid)}")
        for name in schema.decisions:
            if name not in self.columns:
                raise DataError(
                    f"{self.name}: no column {name!r}: expected a column for each decision"
                )
            blank = [k for k, cell in enumerate(self.columns[name]) if _is_blank(cell)]
            if blank:
                raise DataError(f"{self.name}: rule {blank[0] + 1} has no {name!r}")

    def _decisions(self, situations: Situations) -> list[int]:
        """Return the number of each rule's joint decision; -1 if nobody knows it."""
        names, number = situations.schema.decisions, situations.number
        of_name = [[*dict.fromkeys(each)] for each in zip(*situations.decisions, strict=True)]
        found = []
        for rule in range(len(self)):
            cells = [self.columns[name][rule] for name in names]
            same = [_values_of(cell, of) for cell, of in zip(cells, of_name, strict=True)]
            found.append(next((number[k] for k in product(*same) if k in number), -1))
        return found


def _fits(cell: Value, column: Column) -> Bools:  # [n]
    """Return where a variable has the value of a cell, or fulfils its condition."""
    condition = CONDITION.fullmatch(cell) if isinstance(cell, str) else None
    is_number = not any(isinstance(value, str) for value in column.domain)
    if condition and is_number:
        return np.asarray(COMPARE[condition[1]](column.numbers(), float(condition[2])))
    if column.kind is Kind.CONTINUOUS:
        return np.asarray(column.data == _number(cell))
    same = _values_of(cell, column.domain)
    fits = [*(value in same for value in column.domain), False]
    return np.asarray(np.array(fits)[column.data])  # code -1 finds the last


def _values_of(cell: Value, values: Sequence[Value]) -> list[Value]:
    """Return the values that a cell means: as they are or, if there is none, as logs are read.

    >>> _values_of("true", [False, True]), _values_of("1.0", [1, 2]), _values_of("A", ["A", " A"])
    ([True], [1], ['A'])
    """
    exact = [value for value in values if type(value) is type(cell) and value == cell]
    return exact or [value for value in values if _means(cell, value)]


def _means(cell: Value, value: Value) -> bool:
    """Tell whether a cell is a way to write a value."""
    if isinstance(value, str):
        return str(cell).strip() == value.strip()
    written = str(cell).strip().lower()
    return written == str(value).lower() or _number(cell) == value


def _number(cell: object) -> float:
    try:
        return float(str(cell))
    except ValueError:
        return float("nan")


def _is_blank(cell: object) -> bool:
    return is_missing(cell) or (isinstance(cell, str) and not cell.strip())


def _plain(column: Any) -> list[Any]:
    cells = np.ma.getdata(column).astype(object)
    cells[np.ma.getmaskarray(column)] = None
    return list(cells.tolist())


def _read(path: str | Path) -> dict[str, list[Any]]:
    """Read a CSV file; cells are text."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            rows = [*csv.reader(file)]
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not a text file in UTF-8 (byte {error.start})") from None
    rows = [row for row in rows if row]
    if len(rows) < 2:
        raise DataError(f"{path}: expected a row of names and at least one rule")
    odd = next((k for k, row in enumerate(rows) if len(row) != len(rows[0])), None)
    if odd is not None:
        raise DataError(
            f"{path}: row {odd + 1} has {len(rows[odd])} cells, the row of names {len(rows[0])}"
        )
    return {name: [row[k] for row in rows[1:]] for k, name in enumerate(map(str.strip, rows[0]))}
