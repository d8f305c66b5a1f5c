"""A policy as a Python file that imports nothing but the standard library."""

from rspmn.export.python_runtime import BY_SCORES, BY_TREE, CHECKED, MAIN
from rspmn.export.scores import Scores, scores_of
from rspmn.export.state_tables import Stage, described, is_finite, stages_of
from rspmn.export.tree import Node, grown
from rspmn.expressions import missing_of
from rspmn.infer.base_policy import BasePolicy
from rspmn.schema import Kind


def to_python(policy: BasePolicy, t: int = 0) -> str:
    """Return a Python file whose function `act(state)` decides as a policy does at time t.

    It imports nothing but the standard library. Missing values are None.

    Examples
    --------
    >>> from rspmn.envs.paper_grid import paper_grid
    >>> policy = paper_grid().policy(horizon=4)
    >>> names = {}
    >>> exec(to_python(policy), names)
    >>> names["act"]({"x": 0, "y": 0}), policy.act({"x": 0, "y": 0})
    ('down', 'down')
    """
    about = "Made by rspmn; it needs nothing but Python 3.9 or newer."
    head = f'"""{described(policy, t)}\n\n{about}\n"""\n'
    if not is_finite(policy):
        numbers = _literal(scores_of(policy, t))
        data, code = f"import bisect\nimport math\n\nSCORES = {numbers}\n", BY_SCORES
        return _file(policy, head, data, code)
    stages = [_stage(stage) for stage in stages_of(policy, t)]
    several = len(policy.model.schema.decisions) > 1
    data = f"STAGES = [{','.join(stages)}\n]\nSEVERAL = {several}  # decisions in a step\n"
    return _file(policy, head, data, BY_TREE)


def _file(policy: BasePolicy, head: str, data: str, code: str) -> str:
    schema = policy.model.schema
    known = {missing_of(name) for name in schema.informative}  # whether a value is missing
    computed = {
        name: sorted(expression.names)
        for name, expression in schema.computed.items()
        if name not in known
    }
    text = sorted(name for name, kind in schema.kinds.items() if kind is Kind.CATEGORICAL)
    first = [name for name in schema.information_sets[0] if name not in known]
    facts = (
        f"DECISION = {schema.decisions[0]!r}  # the first\n"
        f"COMPUTED = {computed!r}  # the columns that variables are computed from\n"
        f"TEXT = {text!r}  # variables of text\n"
        f"VARIABLES = {list(schema.variables[:-1])!r}\n"
        f"FIRST = {first!r}  # those known before the first decision\n"
        f"ASIDE = {sorted(schema.about_log)!r}  # columns of the log that are no variables\n"
    )
    return f"{head}\n{data}{facts}\n{code}{CHECKED}\n\n{MAIN}"


def _literal(scores: Scores) -> str:
    """Return scores as Python code; infinite bounds have names."""
    lines = [f"    {name!r}: {value!r}," for name, value in scores.to_dict().items()]
    text = "\n".join(["{", *lines, "}"])
    return text if "inf" not in text else f"(lambda inf: {text})(math.inf)"


def _stage(stage: Stage) -> str:
    """Return a stage as Python code: its nodes in a list, tests as tuples, decisions as lists."""
    known = {
        name: list(cells)
        for name, cells in stage.cells.items()
        if not any(type(cell).__name__ == "Other" for cell in cells)
    }
    lines: list[str] = []
    _write(stage, grown(stage), lines)
    nodes = "".join(f"\n        {line}," for line in lines)
    return (
        f"\n    {{\n    'decisions': {list(stage.decisions)!r},\n    'known': {known!r},\n"
        f"    'unseen': {stage.unseen and list(stage.unseen)!r},\n"
        f"    'nodes': [{nodes}\n    ]}}"
    )


def _write(stage: Stage, node: Node, lines: list[str]) -> int:
    """Add the lines of a node and those below it; return the number of its own."""
    place = len(lines)
    if node.test is None or node.yes is None or node.no is None:
        choice = stage.choices[node.choice]
        lines.append(repr(None if choice is None else list(choice)))
        return place
    lines.append("")
    yes, no = _write(stage, node.yes, lines), _write(stage, node.no, lines)
    name, how, value = node.test
    lines[place] = repr((name, how, value, yes, no))
    return place
