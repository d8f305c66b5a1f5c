"""The code of Python files that decide as a policy does: by trees, and by a formula."""

BY_TREE = '''
def act(state):
    """Return what to do in a state, a mapping of variables to values; None is missing.

    Returned is a value or, if a step has several decisions, a mapping of those to make now.
    Decisions that were already made are part of the state. A state that was never seen is a
    LookupError.
    """
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


if __name__ == "__main__":  # reads a CSV file of states, writes the decisions beside them
    import csv
    import sys

    def _read(text):
        if text == "":
            return None
        if text in ("True", "False"):
            return text == "True"
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                pass
        return text

    writer = None
    for row in csv.DictReader(sys.stdin):
        made = act({name: _read(text) for name, text in row.items()})
        row |= made if isinstance(made, dict) else {STAGES[0]["decisions"][0]: made}
        if writer is None:
            writer = csv.DictWriter(sys.stdout, list(row))
            writer.writeheader()
        writer.writerow(row)
'''

BY_SCORES = '''
def act(state):
    """Return what to do in a state, a mapping of variables to values; None is missing.

    A state that was never seen is a LookupError, unless the policy says what to do otherwise.
    """
    values = action_values(state)
    known = [None if each is None else each["known"] for each in values.values()]
    most = max((k for k in known if k is not None), default=0.0)
    left = [
        (action, each["worth"], each["delay"]) for action, each in values.items()
        if each is not None and each["known"] >= SCORES["least_known"] * most
    ]
    if any(worth > -math.inf for _, worth, _ in left):
        left = [each for each in left if each[1] > -math.inf]
    if not left:
        if SCORES["otherwise"] is not None:
            return SCORES["otherwise"]
        raise LookupError("such a state was never seen")
    size = max((abs(worth) for _, worth, _ in left if math.isfinite(worth)), default=0.0)
    least = max(worth for _, worth, _ in left) - max(SCORES["tie"] * size, SCORES["within"])
    left = [each for each in left if each[1] >= least]
    soon = min(delay for *_, delay in left)
    late = max(abs(delay) for *_, delay in left)
    return next(action for action, _, delay in left if delay <= soon + SCORES["tie"] * late)


def action_values(state):
    """Return of each action its worth, its delay, and how much is known; None if never seen."""
    logs = []
    for node in SCORES["nodes"]:
        if node[0] == "leaf":
            logs.append(_log_density(node, _value(state, node[1])))
        elif node[0] == "product":
            logs.append(sum(logs[child] for child in node[1]))
        else:
            pairs = zip(node[1], node[2])
            logs.append(_log_sum([math.log(w) + logs[c] for c, w in pairs if w > 0]))
    weights = [math.log(row[1]) + logs[row[0]] for row in SCORES["rows"]]
    highest = max(weights)
    if highest == -math.inf:
        return dict.fromkeys(SCORES["values"])
    weights = [math.exp(weight - highest) for weight in weights]
    total = sum(weights)
    found = {}
    for k, action in enumerate(SCORES["values"]):
        offered, known, worth, delay = (
            sum(w * row[part][k] for w, row in zip(weights, SCORES["rows"])) for part in range(2, 6)
        )
        found[action] = None if not offered else {
            "known": known / total,
            "worth": worth / known if known else -math.inf,
            "delay": delay / known if known else 0.0,
        }
    return found


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
