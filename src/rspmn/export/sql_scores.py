"""The formula of a policy over numbers as a query in SQL."""

from typing import Any

from rspmn.data.sources.connect import quoted
from rspmn.errors import EvidenceError
from rspmn.export.scores import Scores
from rspmn.export.sql_formula import literal, sql_condition

#: Sums of more terms are written as sums of sums: SQLite refuses deep expressions.
TERMS = 50
#: SQLite has no more columns than this.
MOST_COLUMNS = 1900
#: Below and above all numbers.
LOW, HIGH = "-1e308", "1e308"


def by_scores(scores: Scores, table: str) -> str:
    """Return the query by the formula, in steps that each add columns to those before them.

    Densities of leaves; nodes; weights of interface nodes; then for each decision sums, averages,
    and what is best.
    """
    if scores.support:
        raise EvidenceError(
            "policies over numbers that need logged steps cannot be exported as SQL: export a "
            "Python file, or model.policy(..., safe=False)"
        )
    nodes, rows = scores.nodes, scores.rows
    columns = len(nodes) + len(rows) + sum(24 * len(values) for values in scores.values)
    if columns > MOST_COLUMNS:
        raise EvidenceError(
            f"the query would have {len(nodes)} columns, more than {MOST_COLUMNS}: export a "
            "Python file"
        )
    state = _StateColumns(scores)
    steps = [
        [f"{_density(state, leaf)} AS n{k}" for k, leaf in enumerate(nodes) if leaf[0] == "leaf"]
    ]
    steps += _inner(nodes)
    steps.append([
        f"{' * '.join([_float(weight), *(f'n{node}' for node in below)])} AS w{k}"
        for k, (below, weight, _) in enumerate(rows)
    ])  # fmt: skip
    for level in range(len(scores.decisions)):
        steps += _Decision(scores, level, state).steps()
    names = [name for name in scores.variables if name not in scores.informative]
    shown = ", ".join(f"{state(name)} AS {quoted(name)}" for name in names)
    # steps that are not materialized would be multiplied out
    source, parts = "state", [f"state AS MATERIALIZED (SELECT {state} FROM {quoted(table)})"]
    for number, step in enumerate(steps):
        parts.append(f"s{number} AS MATERIALIZED (SELECT *, {', '.join(step)} FROM {source})")
        source = f"s{number}"
    made = ",\n".join(_made(scores, level) for level in range(len(scores.decisions)))
    return "WITH " + ",\n".join(parts) + f"\nSELECT {shown},\n{made}\nFROM {source}"


def _made(scores: Scores, level: int) -> str:
    """Return the column of a decision: nothing is decided unless all are."""
    none = " OR ".join(f"c{k} IS NULL" for k in range(len(scores.decisions)))
    otherwise = literal(None if scores.otherwise is None else scores.otherwise[level])
    value = _value_of(scores, level)
    return (
        f"CASE WHEN {none} THEN {otherwise} ELSE {value} END AS {quoted(scores.decisions[level])}"
    )


def _value_of(scores: Scores, level: int) -> str:
    """Return what was chosen of a decision, as a value."""
    cases = " ".join(f"WHEN {k} THEN {literal(v)}" for k, v in enumerate(scores.values[level]))
    return f"CASE c{level} {cases} END"


class _StateColumns:
    """The columns of the state, under names of their own: those of steps may be names of theirs."""

    def __init__(self, scores: Scores) -> None:
        self._informative = scores.informative
        self._places: dict[str, int] = {}

    def __call__(self, name: str) -> str:
        """Return the SQL of a variable."""
        if name in self._informative:
            return f"({self(self._informative[name])} IS NULL)"
        return f"x{self._places.setdefault(name, len(self._places))}"

    def __str__(self) -> str:
        """Return the columns that were asked for, as they are selected."""
        return ", ".join(f"{quoted(name)} AS x{k}" for name, k in self._places.items())


class _Decision:
    """The steps to one decision, whose columns have its number at their end."""

    def __init__(self, scores: Scores, level: int, state: _StateColumns) -> None:
        self.scores, self.level, self.state = scores, level, state
        self.every = range(len(scores.values[level]))
        self.paths = _paths(scores, level)  # of each row, its point by what was chosen before

    def steps(self) -> list[list[str]]:
        """Return steps from weights to the place of the value that is chosen."""
        end = f"_{self.level}"
        refused = [self._refused(v) for v in self.every]
        found = [self._path(), self._sums(end), self._averages(end), *self._best("a", end, [])]
        if not any(refused):
            return [*found, [f"{self._first('a', end)} AS c{self.level}"]]
        # Only where something forbidden would be best, the others compete among themselves.
        flags = [f"{each or 'FALSE'} AS no{v}{end}" for v, each in enumerate(refused)]
        broken = " OR ".join(f"(no{v}{end} AND tieda{v}{end} IS NOT NULL)" for v in self.every)
        found += [flags, *self._best("b", end, [f"no{v}{end}" for v in self.every])]
        first, second = self._first("a", end), self._first("b", end)
        return [*found, [f"CASE WHEN {broken} THEN {second} ELSE {first} END AS c{self.level}"]]

    def _path(self) -> list[str]:
        """Return what was chosen before, as one number."""
        path = "0"
        for k in range(self.level):
            path = f"({path} * {len(self.scores.values[k])} + c{k})"
        return [f"{path} AS p{self.level}"]

    def _sums(self, end: str) -> list[str]:
        """Return sums over interface nodes: of weights, and of what each value has in them."""
        found = [f"{self._sum()} AS total{end}"]
        for part, letter in enumerate("okud"):
            found += [f"{self._sum(part, v)} AS {letter}{v}{end}" for v in self.every]
        return found

    def _sum(self, part: int | None = None, value: int = 0) -> str:
        """Return the sum of a number of points, weighed; that of weights if none is named."""
        points, terms = self.scores.points[self.level], []
        for k, path in enumerate(self.paths):
            numbers = [
                0 if place < 0 else 1 if part is None else points[place][part][value]
                for place in path
            ]
            if any(numbers):
                terms.append(f"{_by_path(numbers, f'p{self.level}')} * w{k}")
        return _sum(terms)

    def _averages(self, end: str) -> list[str]:
        every = self.every
        return [
            f"CASE WHEN total{end} > 0 AND o{v}{end} > 0 THEN k{v}{end} / total{end} ELSE -1 END "
            f"AS known{v}{end}"
            for v in every
        ] + [
            f"CASE WHEN k{v}{end} > 0 THEN {letter}{v}{end} / k{v}{end} ELSE {none} END "
            f"AS {name}{v}{end}"
            for letter, name, none in (("u", "worth", LOW), ("d", "late", "0.0"))
            for v in every
        ]

    def _best(self, which: str, end: str, refused: list[str]) -> list[list[str]]:
        """Return steps to the best values: those that compete, the highest, the soonest."""
        scores, every = self.scores, self.every
        known = [
            f"CASE WHEN {refused[v]} THEN -1 ELSE known{v}{end} END"
            if refused
            else f"known{v}{end}"
            for v in every
        ]
        enough = _float(scores.least_known)
        tie, within = f"{_float(scores.tie)} * size{which}{end}", _float(scores.within)
        least = f"(top{which}{end} - CASE WHEN {tie} > {within} THEN {tie} ELSE {within} END)"
        left = [f"left{which}{v}{end}" for v in every]
        tied = [f"tied{which}{v}{end}" for v in every]
        sizes = [f"CASE WHEN {each} > {LOW} THEN ABS({each}) ELSE 0.0 END" for each in left]
        return [
            [f"{each} AS may{which}{v}{end}" for v, each in enumerate(known)],
            [f"{_most([f'may{which}{v}{end}' for v in every])} AS most{which}{end}"],
            [
                f"CASE WHEN may{which}{v}{end} >= 0 AND may{which}{v}{end} >= {enough} * "
                f"most{which}{end} THEN worth{v}{end} END AS {left[v]}"
                for v in every
            ],
            [
                f"{_most([f'COALESCE({each}, {LOW})' for each in left])} AS top{which}{end}",
                f"{_most(sizes)} AS size{which}{end}",
            ],
            [f"CASE WHEN {left[v]} >= {least} THEN late{v}{end} END AS {tied[v]}" for v in every],
            [
                f"-({_most([f'-COALESCE({each}, {HIGH})' for each in tied])}) AS soon{which}{end}",
                f"{_most([f'COALESCE(ABS({each}), 0.0)' for each in tied])} AS slack{which}{end}",
            ],
        ]

    def _first(self, which: str, end: str) -> str:
        """Return the place of the first of the best values that earn soonest."""
        bound = f"soon{which}{end} + {_float(self.scores.tie)} * slack{which}{end}"
        cases = " ".join(f"WHEN tied{which}{v}{end} <= {bound} THEN {v}" for v in self.every)
        return f"CASE {cases} END"

    def _refused(self, value: int) -> str:
        """Return the condition that a value cannot, or must not, be chosen; nothing if it may."""
        found = []
        for level, place, variables, formula, is_law in self.scores.conditions:
            if (level, place) == (self.level, value):
                holds = f"COALESCE({sql_condition(formula, self._column)}, TRUE)"
                lacks = " OR ".join(f"{self._column(name)} IS NULL" for name in variables)
                found.append(f"NOT ({lacks} OR {holds})" if is_law else f"({lacks} OR {holds})")
        return f"({' OR '.join(found)})" if found else ""

    def _column(self, name: str) -> str:
        if name in self.scores.decisions[: self.level]:
            return f"({_value_of(self.scores, self.scores.decisions.index(name))})"
        return self.state(name)


def _paths(scores: Scores, level: int) -> list[list[int]]:
    """Return the points of each row at a decision, by what was chosen before, -1 for none."""
    found = [[place] for *_, place in scores.rows]
    for k in range(level):
        points, none = scores.points[k], [-1] * len(scores.values[k])
        found = [
            [after for place in path for after in (none if place < 0 else points[place][4])]
            for path in found
        ]
    return found


def _by_path(numbers: list[Any], path: str) -> str:
    """Return a number that depends on what was chosen before."""
    if all(number == numbers[0] for number in numbers):
        return _float(numbers[0])
    cases = " ".join(
        f"WHEN {k} THEN {_float(number)}" for k, number in enumerate(numbers) if number
    )
    return f"CASE {path} {cases} ELSE 0 END"


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
    return _sum([f"{_float(weight)} * n{child}" for child, weight in pairs])


def _float(number: float) -> str:
    """Return a number as SQL has it; without an exponent it may be a decimal, and overflow.

    >>> _float(0.25), _float(-1e-9)
    ('0.25e0', '-1e-09')
    """
    written = repr(float(number))
    return written if "e" in written else f"{written}e0"


def _density(state: _StateColumns, leaf: list[Any]) -> str:
    """Return the density of a leaf; 1 where the value is missing."""
    _, name, family, *numbers = leaf
    x = state(str(name))
    cases = [f"WHEN {x} IS NULL THEN 1.0"]
    last = "0.0"
    match family, numbers:
        case "values", [pairs, other]:
            cases += [f"WHEN {x} = {literal(v)} THEN {_float(p)}" for v, p in pairs]
            last = _float(other)
        case "linear", [list(knots), list(heights)]:
            cases.append(f"WHEN {x} < {_float(knots[0])} OR {x} > {_float(knots[-1])} THEN 0.0")
            for a, b, fa, fb in zip(knots, knots[1:], heights, heights[1:], strict=False):
                bound = f"{x} < {_float(b)}" if b != knots[-1] else f"{x} <= {_float(b)}"
                slope = f"({x} - ({_float(a)})) / {_float(b - a)}"
                cases.append(f"WHEN {bound} THEN {_float(fa)} + ({_float(fb - fa)}) * {slope}")
        case "bins", [list(edges), list(heights)]:
            cases.append(f"WHEN {x} <> FLOOR({x}) THEN 0.0")
            pieces = zip(edges, edges[1:], heights, strict=False)
            cases += [f"WHEN {x} >= {a!r} AND {x} < {b!r} THEN {_float(h)}" for a, b, h in pieces]
        case _, [float(centre), float(scale), float(low), float(high), height]:
            inside = [f"{x} >= {_float(low)}"] * (low > -1e308)
            inside += [f"{x} <= {_float(high)}"] * (high < 1e308)
            off = f"({x} - ({_float(centre)}))"
            t = f"(1.0 + {off} * {off} / {_float(4 * scale * scale)})"
            bell = f"{_float(height)} / ({t} * {t} * SQRT({t}))"
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
