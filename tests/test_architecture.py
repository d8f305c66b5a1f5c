"""Imports point one way: schema ← data, circuit ← model ← infer ← learn ← evaluate ← cli."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import rspmn

SOURCE = Path(rspmn.__file__).parent

#: The parts from the first to the last; each may import those on the lines above its own.
LAYERS: list[set[str]] = [
    {"errors", "memory", "types"},
    {"expressions", "files", "values"},
    {"availability", "display", "log_format"},
    {"schema"},
    {"circuit"},
    {"data", "end_nodes", "successor_counts"},
    {"context_trees"},
    {"behaviour"},
    {"model"},
    {"spmn"},
    {"model_file", "infer"},
    {"trust"},
    {"explain", "export"},
    {"envs", "learn"},
    {"doctor", "evaluate"},
    {"__init__"},
    {"plot", "report"},
    {"serve"},
    {"cli"},
    {"__main__"},
]

#: Methods that open a door to a later part: they import it when they are called.
DOORS: dict[str, set[str]] = {
    "model": {"model_file", "infer", "trust"},
    "spmn": {"model_file", "infer"},
    "infer": {"trust", "explain"},
}


#: The kinds of nodes that a test here asks about.
ASKED = ast.Import | ast.ImportFrom | ast.Call | ast.ExceptHandler | ast.MatchClass | ast.ClassDef
#: Those that hold no others, which are most.
LEAVES = (ast.Name, ast.Constant, ast.expr_context, ast.operator)


@cache
def trees() -> list[tuple[Path, list[tuple[ast.AST, bool]]]]:
    """Return all files of the package: their nodes, and whether each is met on loading."""
    paths = sorted(SOURCE.rglob("*.py"))
    return [(p, [*asked(ast.parse(p.read_text(encoding="utf-8")))]) for p in paths]


def asked(tree: ast.Module) -> Iterator[tuple[ast.AST, bool]]:
    """Return the nodes that are asked about; what functions hold is not met on loading."""
    left: list[tuple[ast.AST, bool]] = [(tree, True)]
    while left:
        node, on_loading = left.pop()
        if isinstance(node, ASKED):
            yield node, on_loading
        of_types = isinstance(node, ast.If) and name_of(node.test) == "TYPE_CHECKING"
        on_loading &= not (of_types or isinstance(node, ast.FunctionDef))
        children = ast.iter_child_nodes(node)
        left += [(child, on_loading) for child in children if not isinstance(child, LEAVES)]


def name_of(node: ast.AST) -> str:
    """Return a name; nothing of any other expression."""
    return node.id if isinstance(node, ast.Name) else ""


def before(part: str) -> set[str]:
    """Return the parts on the lines above a part's own."""
    layer = next(i for i, parts in enumerate(LAYERS) if part in parts)
    return set().union(*LAYERS[:layer])


def part(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(nodes: list[tuple[ast.AST, bool]]) -> Iterator[tuple[str, bool]]:
    """Return the parts of rspmn that a file imports, and whether on loading."""
    for node, on_loading in nodes:
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name.split(".")[0] == "rspmn":
                yield [*name.split("."), "__init__"][1], on_loading


def test_imports_point_one_way() -> None:
    for path, nodes in trees():
        here = part(path)
        for target, on_loading in imported(nodes):
            allowed = before(here) | {here} | (set() if on_loading else DOORS.get(here, set()))
            assert target in allowed, f"{path.relative_to(SOURCE)} imports rspmn.{target}"


def test_no_pickle_no_print_no_broad_except() -> None:
    for path, nodes in trees():
        for node, _ in nodes:
            called = name_of(node.func) if isinstance(node, ast.Call) else ""
            assert called not in ("eval", "exec"), path
            assert called != "print" or part(path) == "cli", path
            if isinstance(node, ast.Import | ast.ImportFrom):
                assert "pickle" not in ast.unparse(node), path
            if isinstance(node, ast.ExceptHandler):
                assert node.type is not None, path
                assert ast.unparse(node.type) != "Exception", path


def test_no_file_dispatches_on_leaf_families() -> None:
    """What a family does is a method of it: a new one is one file."""
    families = {"Categorical", "IntegerHistogram", "PiecewiseLinear"}
    for path, nodes in trees():
        for node, _ in nodes:
            tested = ""
            if isinstance(node, ast.MatchClass):
                tested = ast.unparse(node.cls)
            elif isinstance(node, ast.Call) and name_of(node.func) == "isinstance":
                tested = ast.unparse(node.args[1])
            assert not families & set(tested.replace("|", " ").split()), path


def test_no_two_classes_share_a_name() -> None:
    """Private classes may: they are read with their module."""
    homes: dict[str, Path] = {}
    for path, nodes in trees():
        for node, on_loading in nodes:
            if isinstance(node, ast.ClassDef) and on_loading and not node.name.startswith("_"):
                assert homes.setdefault(node.name, path) == path, (node.name, path)
