"""Integers that do not fit into 64 bits: identifiers, which are text in every engine."""

from collections.abc import Collection
from typing import Any

import narwhals as nw

from rspmn.data.cells import INT64
from rspmn.data.sources.engine import Engine
from rspmn.data.sources.engine_columns import count_where, has_fraction_digits, stored_columns
from rspmn.data.sources.text_numbers import with_numbers
from rspmn.schema import Schema

#: Types of integers that may not fit.
WIDE = (nw.Int128, nw.UInt128, nw.UInt64)


def with_plain_columns(source: Engine, schema: Schema) -> Engine:
    """Return a log with the numbers that its format says are in text, and identifiers as text."""
    log = schema.log
    source = with_numbers(source, log)
    if log.wide:
        return with_identifiers(source, source.names)
    return with_identifiers(source, (log.episode, log.time, log.flag, *schema.variables))


def with_identifiers(source: Engine, wanted: Collection[str | None]) -> Engine:
    """Return a log in which the columns that are used and hold such integers are text."""
    types = dict(source.frame.collect_schema())
    wide = [name for name in source.names if _is_wide(types[name])]
    wide = [name for name in stored_columns(source.names, wanted) if name in wide] if wide else []
    if not wide:
        return source
    is_huge = []
    for k, name in enumerate(wide):
        condition = nw.col(name) > nw.lit(int(INT64.max))
        if types[name] not in (nw.UInt64, nw.UInt128):
            condition = condition | (nw.col(name) < nw.lit(int(INT64.min)))
        is_huge.append(count_where(condition).alias(f"c{k}"))
    found = source.read(source.frame.select(*is_huge))
    counts = [found.cells(f"c{k}").present for k in range(len(wide))]
    huge = [name for name, count in zip(wide, counts, strict=True) if len(count) and count[0]]
    return source.with_columns([nw.col(name).cast(nw.String) for name in huge])


def _is_wide(dtype: Any) -> bool:
    return dtype in WIDE or (dtype == nw.Decimal and not has_fraction_digits(dtype))
