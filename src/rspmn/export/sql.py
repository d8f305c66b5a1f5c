"""A policy as a query in SQL, in the words that SQLite, DuckDB and PostgreSQL share."""

from rspmn.data.sources.connect import quoted
from rspmn.export.scores import scores_of
from rspmn.export.sql_formula import literal
from rspmn.export.sql_scores import by_scores
from rspmn.export.state_tables import OTHER, Stage, described, is_finite, stages_of
from rspmn.export.tree import CellTest, Node, grown
from rspmn.infer.base_policy import BasePolicy


def to_sql(policy: BasePolicy, t: int = 0, table: str = "states") -> str:
    """Return a query that adds what a policy decides at time t to the rows of a table.

    Missing values are NULL; in states that were never seen the decision is NULL.

    Parameters
    ----------
    policy, t
        The policy, and the time step.
    table
        The table of states, a column for each variable.

    Examples
    --------
    >>> from rspmn.envs.paper_grid import paper_grid
    >>> print(to_sql(paper_grid().policy(horizon=4)).splitlines()[1])
    SELECT *,
    """
    head = f"-- {described(policy, t)} Made by rspmn."
    if not is_finite(policy):
        return f"{head}\n{by_scores(scores_of(policy, t), table)};\n"
    columns = []
    for stage in stages_of(policy, t):
        root = grown(stage)
        for k, decision in enumerate(stage.decisions):
            columns.append(f"{_guarded(stage, root, k)} AS {quoted(decision)}")
    listed = ",\n".join(columns)
    return f"{head}\nSELECT *,\n{listed}\nFROM {quoted(table)};\n"


# ---- trees ------------------------------------------------------------------------------------


def _guarded(stage: Stage, root: Node, decision: int) -> str:
    """Return a tree below a test that all values were ever seen."""
    known = []
    for name, cells in stage.cells.items():
        if OTHER not in cells:
            listed = ", ".join(
                literal(cell)  # type: ignore[arg-type]
                for cell in cells
                if cell is not None
            )
            known.append(f"{quoted(name)} NOT IN ({listed})")  # NULL is not such a value
            known += [] if None in cells else [f"{quoted(name)} IS NULL"]
    tree = _case(stage, root, decision, "  ")
    if not known:
        return f"  {tree}"
    unseen = literal(stage.unseen[decision] if stage.unseen else None)
    return f"  CASE WHEN {' OR '.join(known)} THEN {unseen}\n  ELSE {tree} END"


def _case(stage: Stage, node: Node, decision: int, indent: str) -> str:
    if node.test is None or node.yes is None or node.no is None:
        choice = stage.choices[node.choice]
        return literal(None if choice is None else choice[decision])
    inner = indent + "  "
    yes, no = (_case(stage, below, decision, inner) for below in (node.yes, node.no))
    if yes == no:
        return yes
    return f"CASE WHEN {_condition(node.test)} THEN {yes}\n{inner}ELSE {no} END"


def _condition(test: CellTest) -> str:
    name = quoted(test.variable)
    if test.how == "missing":
        return f"{name} IS NULL"
    return f"{name} {'=' if test.how == 'is' else '<='} {literal(test.value)}"
