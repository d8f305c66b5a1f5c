"""The code of Python files that decide as a policy does: by trees, or by a formula."""

BY_TREE = '''
def act(state):
    """Return what to do in a state, a mapping of variables to values; None is missing.

    Returned is a value or, if a step has several decisions, a mapping of those to make now.
    Decisions that were already made are part of the state. A state that was never seen is a
    LookupError.
    """
    state = _checked(state)
    for stage in STAGES:
        if not all(name in state for name in stage["decisions"]):
            return _decided(stage, state)
    raise LookupError("no decision is left to make")


def _decided(stage, state):
    unseen = [name for name, known in stage["known"].items() if state.get(name) not in known]
    node = stage["unseen"] if unseen else stage["nodes"][0]
    while isinstance(node, tuple):
        name, how, value, yes, no = node
        node = stage["nodes"][yes if _passes(state.get(name), how, value) else no]
    if node is None:
        if unseen:
            raise LookupError(f"{unseen[0]}={state.get(unseen[0])!r} was never seen")
        raise LookupError("such a state was never seen")
    made = dict(zip(stage["decisions"], node))
    return made if SEVERAL else node[0]


def _passes(found, how, value):
    if found is None:
        return how == "missing"
    if how == "is":
        return found == value
    return how == "at most" and found <= value

'''

CHECKED = """

def _checked(state):
    for name, columns in COMPUTED.items():
        given = [column for column in columns if column in state]
        if name not in state and given:
            raise LookupError(f"give {name!r}: it is not computed from {given[0]!r} here")
    valid = {*VARIABLES, *ASIDE}.union(*COMPUTED.values())
    for name in state:
        if name not in valid:
            listed = ", ".join(map(repr, VARIABLES))
            raise LookupError(f"unknown variable {name!r}: expected some of {listed}")
    return {name: None if value != value else value for name, value in state.items()}  # NaN
"""

MAIN = """if __name__ == "__main__":  # reads a CSV file of states, writes the decisions beside them
    import csv
    import sys

    def _read(name, text):
        if text == "":
            return None
        if name in TEXT:
            return text
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                pass
        return text

    writer, rows = None, csv.DictReader(sys.stdin)
    for name in FIRST:
        if name not in (rows.fieldnames or ()):
            sys.exit(f"no column {name!r} in the table: it has {rows.fieldnames}")
    for row in rows:
        made = act({name: _read(name, row[name]) for name in VARIABLES if name in row})
        row |= made if isinstance(made, dict) else {DECISION: made}
        if writer is None:
            writer = csv.DictWriter(sys.stdout, list(row))
            writer.writeheader()
        writer.writerow(row)
"""

BY_SCORES = '''
def act(state):
    """Return what to do in a state, a mapping of variables to values; None is missing.

    Returned is a value or, if a step has several decisions, a mapping of those to make now.
    Decisions that were already made are part of the state. A state that was never seen is a
    LookupError, unless the policy says what to do otherwise.
    """
    made, state = {}, _checked(state)
    where = _where(state)
    for level, decision in enumerate(SCORES["decisions"]):
        if state.get(decision) is None:
            action = _chosen(action_values(state, where, level), level, {**state, **made})
            if action is None:
                if SCORES["otherwise"] is None:
                    raise LookupError("such a state was never seen")
                made = dict(zip(SCORES["decisions"], SCORES["otherwise"]))
                break
            made[decision] = action
        place = SCORES["values"][level].index({**state, **made}[decision])
        where = [
            (weight, SCORES["points"][level][point][4][place])
            for weight, point in where if len(SCORES["points"][level][point]) > 4
        ]
        where = [(weight, point) for weight, point in where if point >= 0]
    if not made:
        raise LookupError("no decision is left to make")
    return made if len(SCORES["decisions"]) > 1 else made[SCORES["decisions"][0]]


def _chosen(values, level, state):
    best = _best(values)
    forbidden = [a for place, a in enumerate(values) if _is_forbidden(level, place, state)]
    if any(action in forbidden for action in best):
        best = _best({a: None if a in forbidden else each for a, each in values.items()})
    if not best:
        return None
    soon = min(values[action]["delay"] for action in best)
    late = max(abs(values[action]["delay"]) for action in best)
    return next(a for a in best if values[a]["delay"] <= soon + SCORES["tie"] * late)


def _best(values):
    offered = {action: each for action, each in values.items() if each is not None}
    if SCORES["support"]:
        least, share = SCORES["support"]
        enough = share * max((each["steps"] for each in offered.values()), default=0.0)
        enough = enough if least is None else min(least, enough)
        offered = {action: each for action, each in offered.items() if each["steps"] >= enough}
    most = max((each["known"] for each in offered.values()), default=0.0)
    left = {
        action: each["worth"] for action, each in offered.items()
        if each["known"] >= SCORES["least_known"] * most
    }
    if any(worth > -math.inf for worth in left.values()):
        left = {action: worth for action, worth in left.items() if worth > -math.inf}
    size = max((abs(worth) for worth in left.values() if math.isfinite(worth)), default=0.0)
    least = max(left.values(), default=0.0) - max(SCORES["tie"] * size, SCORES["within"])
    return [action for action, worth in left.items() if worth >= least]


def action_values(state, where=None, level=0):
    """Return of each action its worth, its delay, and how much is known; None if never seen."""
    where = _where(_checked(state)) if where is None else where
    total = sum(weight for weight, _ in where)
    found = {}
    for k, action in enumerate(SCORES["values"][level]):
        offered, known, worth, delay = (
            sum(weight * SCORES["points"][level][point][part][k] for weight, point in where)
            for part in range(4)
        )
        found[action] = None if not offered else {
            "known": known / total,
            "worth": worth / known if known else -math.inf,
            "delay": delay / known if known else 0.0,
        }
        if SCORES["support"] and found[action]:
            steps = SCORES["steps"][level]
            found[action]["steps"] = sum(steps[point][k] for _, point in where)
    return found


def _where(state):
    logs = []
    for node in SCORES["nodes"]:
        if node[0] == "leaf":
            logs.append(_log_density(node, _value(state, node[1])))
        elif node[0] == "product":
            logs.append(sum(logs[child] for child in node[1]))
        else:
            pairs = zip(node[1], node[2])
            logs.append(_log_sum([math.log(w) + logs[c] for c, w in pairs if w > 0]))
    weights = [math.log(w) + sum(logs[node] for node in below) for below, w, _ in SCORES["rows"]]
    highest = max(weights)
    if highest == -math.inf:
        return []
    rows = zip(weights, SCORES["rows"])
    return [(math.exp(w - highest), row[2]) for w, row in rows if w > -math.inf]


def _is_forbidden(level, place, state):
    for of, value, variables, formula, is_law in SCORES["conditions"]:
        if (of, value) == (level, place):
            known = all(_value(state, name) is not None for name in variables)
            holds = _formula_value(formula, state) if known else None
            if (holds == 0) if is_law else (holds != 0):
                return True
    return False


def _formula_value(formula, state):
    if not isinstance(formula, list):
        return formula
    kind, *parts = formula
    if kind == "column":
        return _value(state, parts[0])
    values = [_formula_value(part, state) for part in (parts[:1] if kind == "in" else parts)]
    if kind == "lacks":
        return int(values[0] is None)
    if kind == "filled":
        return 0 if values[0] is None else values[0]
    if kind == "both" and 0 in values:
        return 0
    if None in values:
        return None
    if kind == "in":
        return int(values[0] in parts[1])
    if kind in ("not", "number"):
        return int(bool(values[0]) == (kind == "number"))
    a, b = values
    if kind in "+-*/":
        return a + b if kind == "+" else a - b if kind == "-" else a * b if kind == "*" else a / b
    return int({
        "==": a == b, "same": a == b, "!=": a != b, "both": bool(a and b),
        "<": kind == "<" and a < b, "<=": kind == "<=" and a <= b,
        ">": kind == ">" and a > b, ">=": kind == ">=" and a >= b,
    }[kind])


def _value(state, name):
    if name in SCORES["informative"]:
        return state.get(SCORES["informative"][name]) is None
    value = state.get(name)
    return None if value != value else value


def _log_density(leaf, value):
    _, _, family, *numbers = leaf
    if value is None:
        return 0.0
    if family == "values":
        density = next((p for v, p in numbers[0] if v == value), numbers[1])
    elif family == "linear":
        density = _linear(*numbers, value)
    elif family == "bins":
        k = bisect.bisect_right(numbers[0], value) - 1
        inside = 0 <= k < len(numbers[1]) and value == int(value)
        density = numbers[1][k] if inside else 0.0
    else:
        centre, scale, low, high, height = numbers
        inside = low <= value <= high
        density = height * (1 + ((value - centre) / scale) ** 2 / 4) ** -2.5 if inside else 0.0
    return math.log(density) if density > 0 else -math.inf


def _linear(knots, heights, value):
    if not knots[0] <= value <= knots[-1]:
        return 0.0
    k = min(bisect.bisect_right(knots, value), len(knots) - 1)
    share = (value - knots[k - 1]) / (knots[k] - knots[k - 1])
    return heights[k - 1] + (heights[k] - heights[k - 1]) * share


def _log_sum(logs):
    highest = max(logs, default=-math.inf)
    if highest == -math.inf:
        return highest
    return highest + math.log(sum(math.exp(log - highest) for log in logs))
'''
