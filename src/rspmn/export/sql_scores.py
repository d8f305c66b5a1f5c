"""The formula of a policy over numbers as a query in SQL."""

from typing import Any

from rspmn.errors import EvidenceError
from rspmn.export.scores import Scores
from rspmn.export.sql_words import literal, quoted

#: Sums of more terms are written as sums of sums: SQLite refuses deep expressions.
TERMS = 50
#: SQLite has no more columns than this.
MOST_COLUMNS = 1900
#: Below and above all numbers.
LOW, HIGH = "-1e308", "1e308"


def by_scores(scores: Scores, table: str) -> str:
    """Return the query by the formula, in steps that each add columns to those before them.

    Densities of leaves; nodes; weights of interface nodes; their sums; averages; what is best.
    """
    nodes, rows, n = scores.nodes, scores.rows, len(scores.values)
    if len(nodes) + len(rows) + 12 * n > MOST_COLUMNS:
        raise EvidenceError(
            f"the formula has {len(nodes)} nodes, more than a query can have columns "
            f"({MOST_COLUMNS}): write a Python file"
        )
    steps = [
        [f"{_density(scores, leaf)} AS n{k}" for k, leaf in enumerate(nodes) if leaf[0] == "leaf"]
    ]
    steps += _inner(nodes)
    steps.append([f"{row[1]!r} * n{row[0]} AS w{k}" for k, row in enumerate(rows)])
    steps += [_sums(scores), *_best(scores)]
    source, parts = quoted(table), []  # steps that are not materialized would be multiplied out
    for number, columns in enumerate(steps):
        parts.append(f"s{number} AS MATERIALIZED (SELECT *, {', '.join(columns)} FROM {source})")
        source = f"s{number}"
    cases = "\n".join(
        f"  WHEN tied{v} <= soon + {scores.tie!r} * slack THEN {literal(value)}"
        for v, value in enumerate(scores.values)
    )
    names = ", ".join(quoted(name) for name in scores.variables if name not in scores.informative)
    return (
        "WITH " + ",\n".join(parts) + f"\nSELECT {names},\nCASE\n{cases}\n"
        f"  ELSE {literal(scores.otherwise)} END AS {quoted(scores.decision)}\nFROM {source}"
    )


def _sums(scores: Scores) -> list[str]:
    """Return sums over interface nodes: of weights, and of what each value has in them."""
    found = [f"{_sum([f'w{k}' for k in range(len(scores.rows))])} AS total"]
    for part, letter in ((2, "o"), (3, "k"), (4, "u"), (5, "d")):
        for v in range(len(scores.values)):
            pairs = [(k, row[part][v]) for k, row in enumerate(scores.rows)]
            found.append(f"{_sum([f'{x!r} * w{k}' for k, x in pairs if x])} AS {letter}{v}")
    return found


def _best(scores: Scores) -> list[list[str]]:
    """Return steps to the best value: averages, those that compete, the highest, the soonest."""
    every = range(len(scores.values))
    tie, within = f"{scores.tie!r} * size", repr(scores.within)
    least = f"(top - CASE WHEN {tie} > {within} THEN {tie} ELSE {within} END)"
    sizes = [f"CASE WHEN left{v} > {LOW} THEN ABS(left{v}) ELSE 0.0 END" for v in every]
    return [
        [
            f"CASE WHEN total > 0 AND o{v} > 0 THEN k{v} / total ELSE -1 END AS known{v}"
            for v in every
        ]
        + [f"CASE WHEN k{v} > 0 THEN u{v} / k{v} ELSE {LOW} END AS worth{v}" for v in every]
        + [f"CASE WHEN k{v} > 0 THEN d{v} / k{v} ELSE 0.0 END AS late{v}" for v in every],
        [f"{_most([f'known{v}' for v in every])} AS most_known"],
        [
            f"CASE WHEN known{v} >= 0 AND known{v} >= {scores.least_known!r} * most_known "
            f"THEN worth{v} END AS left{v}"
            for v in every
        ],
        [
            f"{_most([f'COALESCE(left{v}, {LOW})' for v in every])} AS top",
            f"{_most(sizes)} AS size",
        ],
        [f"CASE WHEN left{v} >= {least} THEN late{v} END AS tied{v}" for v in every],
        [
            f"-({_most([f'-COALESCE(tied{v}, {HIGH})' for v in every])}) AS soon",
            f"{_most([f'COALESCE(ABS(tied{v}), 0.0)' for v in every])} AS slack",
        ],
    ]


def _inner(nodes: list[list[Any]]) -> list[list[str]]:
    """Return steps for products and sums, each of nodes whose children are there."""
    done = {k for k, node in enumerate(nodes) if node[0] == "leaf"}
    steps = []
    while len(done) < len(nodes):
        ready = [k for k, node in enumerate(nodes) if k not in done and done.issuperset(node[1])]
        steps.append([f"{_combined(nodes[k])} AS n{k}" for k in ready])
        done.update(ready)
    return steps


def _combined(node: list[Any]) -> str:
    kind, children, *weights = node
    if kind == "product":
        return " * ".join(f"n{c}" for c in children) or "1.0"
    pairs = zip(children, weights[0], strict=True)
    return _sum([f"{weight!r} * n{child}" for child, weight in pairs])


def _density(scores: Scores, leaf: list[Any]) -> str:
    """Return the density of a leaf; 1 where the value is missing."""
    _, name, family, *numbers = leaf
    text = str(name)
    x = (
        f"({quoted(scores.informative[text])} IS NULL)"
        if text in scores.informative
        else quoted(text)
    )
    cases = [f"WHEN {x} IS NULL THEN 1.0"]
    last = "0.0"
    match family, numbers:
        case "values", [pairs, other]:
            cases += [f"WHEN {x} = {literal(v)} THEN {p!r}" for v, p in pairs]
            last = repr(other)
        case "linear", [list(knots), list(heights)]:
            cases.append(f"WHEN {x} < {knots[0]!r} OR {x} > {knots[-1]!r} THEN 0.0")
            for a, b, fa, fb in zip(knots, knots[1:], heights, heights[1:], strict=False):
                bound = f"{x} < {b!r}" if b != knots[-1] else f"{x} <= {b!r}"
                slope = f"({x} - ({a!r})) / {b - a!r}"
                cases.append(f"WHEN {bound} THEN {fa!r} + ({fb - fa!r}) * {slope}")
        case "bins", [list(edges), list(heights)]:
            cases.append(f"WHEN {x} <> FLOOR({x}) THEN 0.0")
            pieces = zip(edges, edges[1:], heights, strict=False)
            cases += [f"WHEN {x} >= {a!r} AND {x} < {b!r} THEN {h!r}" for a, b, h in pieces]
        case _, [float(centre), float(scale), float(low), float(high), height]:
            inside = [f"{x} >= {low!r}"] * (low > -1e308) + [f"{x} <= {high!r}"] * (high < 1e308)
            t = f"(1.0 + ({x} - ({centre!r})) * ({x} - ({centre!r})) / {4 * scale * scale!r})"
            bell = f"{height!r} / ({t} * {t} * SQRT({t}))"
            cases.append(f"WHEN {' AND '.join(inside) or 'TRUE'} THEN {bell}")
    return f"CASE {' '.join(cases)} ELSE {last} END"


def _sum(terms: list[str]) -> str:
    """Return a sum, of sums if it is long."""
    if not terms:
        return "0.0"
    if len(terms) <= TERMS:
        return " + ".join(terms)
    size = -(-len(terms) // TERMS)
    return _sum([f"({_sum(terms[k : k + size])})" for k in range(0, len(terms), size)])


def _most(terms: list[str]) -> str:
    """Return the highest of some terms, none of which is NULL."""
    cases = [
        f"WHEN {' AND '.join(f'{term} >= {other}' for other in terms[k + 1 :])} THEN {term}"
        for k, term in enumerate(terms[:-1])
    ]
    return f"CASE {' '.join(cases)} ELSE {terms[-1]} END" if cases else terms[-1]
