"""Tables and facts for people: as text for terminals, as HTML for notebooks."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

#: Cells of tables are shortened to this where the width is limited.
LONGEST_CELL = 40
#: So many rows of a table are shown in a notebook.
MOST_ROWS = 20


def table_lines(
    table: Mapping[str, Sequence[Any]],
    width: int | None = None,
    heading: Callable[[str], str] = str,
) -> list[str]:
    """Return the lines of a table.

    `table`: columns by their names. `width`: the number of characters in a line. Long cells are
    shortened, and columns that do not fit are continued in a block of their own, below. Without it,
    nothing is. `heading`: what to make of the line of names.

    Examples
    --------
    >>> table_lines({"cell": [0, 14], "action": ["up", "down"]})
    ['cell  action', '   0  up', '  14  down']
    >>> table_lines({"cell": [0, 14], "action": ["up", "down"]}, width=8)
    ['cell', '   0', '  14', '', 'action', 'up', 'down']
    """
    columns = [_laid_out(name, column, width) for name, column in table.items()]
    lines: list[str] = []
    for block in _blocks(columns, width):
        lines += [""] if lines else []
        rows = ["  ".join(row).rstrip() for row in zip(*block, strict=True)]
        lines += [heading(rows[0]), *rows[1:]]
    return lines


def _laid_out(name: str, column: Sequence[Any], width: int | None) -> list[str]:
    """Return the cells of a column, all of one length: numbers to the right, text to the left."""
    cells = [name, *map(cell_text, column)]
    if width is not None:
        cells = [shortened(cell, min(LONGEST_CELL, width)) for cell in cells]
    longest = max(map(len, cells))
    if all(map(_is_number, column)):
        return [cell.rjust(longest) for cell in cells]
    return [cell.ljust(longest) for cell in cells]


def _is_number(value: Any) -> bool:
    """Tell whether a cell is a number, or a share in percent."""
    try:
        float(cell_text(value).removesuffix("%") or 0)
    except ValueError:
        return isinstance(value, bool)
    return True


def _blocks(columns: list[list[str]], width: int | None) -> list[list[list[str]]]:
    """Return the columns in groups, each of which fits the width."""
    blocks: list[list[list[str]]] = [[]]
    used = 0
    for column in columns:
        needed = len(column[0]) + (2 if blocks[-1] else 0)
        if width is not None and blocks[-1] and used + needed > width:
            first = columns[0]  # is repeated where there is room: it names the rows
            fits = len(first[0]) + 2 + len(column[0]) <= width
            blocks.append([first] if fits else [])
            used, needed = (len(first[0]), 2 + len(column[0])) if fits else (0, len(column[0]))
        blocks[-1].append(column)
        used += needed
    return blocks


def shortened(text: str, length: int) -> str:
    """Return a text of at most a length."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def cell_text(value: Any) -> str:
    """Return a value as tables show it."""
    if isinstance(value, float):
        from rspmn.values import short  # with numpy: not before there is a number to show

        return short(value)
    return "" if value is None else str(value)


# ---- notebooks --------------------------------------------------------------------------------


def table_html(table: Mapping[str, Sequence[Any]], title: str = "", most: int = MOST_ROWS) -> str:
    """Return a table as HTML; below it, how many rows are not shown.

    >>> table_html({"x": [1], "a": ["<b>"]})
    '<table><thead><tr><th>x</th><th>a</th></tr></thead><tbody><tr><td>1</td><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    rows = list(zip(*table.values(), strict=True))
    head = "".join(f"<th>{escape(str(name))}</th>" for name in table)
    lines = [
        "<tr>" + "".join(f"<td>{escape(cell_text(cell))}</td>" for cell in row) + "</tr>"
        for row in rows[:most]
    ]
    more = f"<p>and {len(rows) - most} rows more</p>" if len(rows) > most else ""
    above = f"<p><b>{escape(title)}</b></p>" if title else ""
    body = "".join(lines)
    return f"{above}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def facts_html(title: str, facts: Mapping[str, object]) -> str:
    """Return named facts as HTML."""
    lines = [
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(fact_text(fact))}</td></tr>"
        for name, fact in facts.items()
    ]
    return f"<p><b>{escape(title)}</b></p><table><tbody>{''.join(lines)}</tbody></table>"


def fact_text(fact: object) -> str:
    """Return a fact as text: lists with commas, nothing as "none"."""
    shown = ", ".join(map(str, fact)) if isinstance(fact, list | tuple) else fact
    return "none" if shown in (None, "") else str(shown)


def text_html(text: str) -> str:
    """Return text as HTML that keeps its columns."""
    return f"<pre>{escape(text)}</pre>"
