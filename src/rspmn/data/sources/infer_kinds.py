"""Kinds of variables, asked of the engine: for logs that are never in memory as a whole."""

from collections.abc import Mapping

import narwhals as nw

from rspmn.data.sources.open import Frame, Source
from rspmn.schema import Kind, Schema


def kinds_of(
    groups: Frame, source: Source, schema: Schema, here: Mapping[str, str], after: Mapping[str, str]
) -> dict[str, Kind]:
    """Return the kind of every variable, as coding all of its values at once would find it."""
    types = dict(groups.collect_schema())
    found: dict[str, Kind] = dict(schema.kinds) | {schema.utility: Kind.CONTINUOUS}
    open_ones = {}
    for name in schema.variables:
        columns = [nw.col(c) for c in (here[name], after.get(name)) if c is not None]
        dtype = types[here[name]]
        if name in found:
            continue
        if dtype == nw.Boolean:
            found[name] = Kind.BOOLEAN
        elif dtype.is_float():
            odd = [(c != c.floor()) & ~c.is_null() & ~c.is_nan() for c in columns]
            open_ones[name] = nw.any_horizontal(*odd, ignore_nulls=True).any()
        elif dtype.is_numeric():
            found[name] = Kind.INTEGER
        elif source.files is not None and source.files.is_text:
            words = [~c.str.to_lowercase().is_in(["true", "false", ""]) for c in columns]
            open_ones[name] = nw.any_horizontal(*words, ignore_nulls=True).any()
        else:
            found[name] = Kind.CATEGORICAL
    if not open_ones:
        return found
    asked = [expression.alias(f"k{k}") for k, expression in enumerate(open_ones.values())]
    table = source.read(groups.select(*asked))
    for k, name in enumerate(open_ones):
        told = table.cells(f"k{k}").present
        is_so = bool(len(told) and told[0])
        if types[here[name]].is_float():
            found[name] = Kind.CONTINUOUS if is_so else Kind.INTEGER
        else:
            found[name] = Kind.CATEGORICAL if is_so else Kind.BOOLEAN
    return found
