"""Mutation testing: whether tests notice small changes of the code.

    make coverage                                  # says which test runs which line
    python tests/mutation.py --mutants 300 --seed 0

Mutants are drawn from all that can be made in lines that some test runs. Each is judged by the
tests that run its line, the most specific first (those that run the fewest lines). A mutant that
fails a test, or takes far longer, is killed; those that survive are printed, to be reviewed.
"""

import argparse
import ast
import contextlib
import copy
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("circuit", "infer", "learn")
#: A mutant is judged by so many tests at most.
MOST_TESTS = 24
#: CPU seconds that the tests of a mutant may take: one that takes longer is killed.
MOST_SECONDS = 60
#: The exit codes of a child.
SURVIVED, KILLED = 0, 1

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or,
    ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv,
}  # fmt: skip


class Mutant(NamedTuple):
    """A place in a file, and what is done there."""

    path: Path
    line: int
    place: int  # which of the places of the file, in the order of `ast.walk`
    what: str


class Coverage:
    """Which tests run which lines."""

    def __init__(self, data: Path) -> None:
        from coverage import CoverageData

        found = CoverageData(str(data))
        found.read()
        self.tests_of: dict[Path, dict[int, set[str]]] = {}
        self.size: Counter[str] = Counter()
        for name in found.measured_files():
            part = Path(name).parts
            path = Path(*part[len(part) - 1 - part[::-1].index("src") :])
            of_file = self.tests_of.setdefault(path, {})
            for line, contexts in found.contexts_by_lineno(name).items():
                # documents and docstrings run what is installed, so they judge no mutant
                of_file[line] = {c.split("[")[0] for c in contexts if c.startswith("tests/")}
                self.size.update(of_file[line])

    def tests(self, mutant: Mutant) -> list[str]:
        """Return the tests that run the line of a mutant, the most specific first."""
        found = self.tests_of.get(mutant.path, {}).get(mutant.line, set())
        return sorted(found, key=lambda test: (self.size[test], test))[:MOST_TESTS]


# ---- mutants ---------------------------------------------------------------------------------


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Return nodes that can be changed, with the way to do it."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert | ast.Raise | ast.AnnAssign | ast.JoinedStr):
            skipped.update(id(each) for each in ast.walk(node))
        if isinstance(node, ast.FunctionDef):
            for part in filter(None, (node.returns, *(a.annotation for a in node.args.args))):
                skipped.update(id(each) for each in ast.walk(part))
        if id(node) in skipped:
            continue
        match node:
            case ast.Compare(ops=[op]) if type(op) in SWAPPED:
                yield node, f"{type(op).__name__} → {SWAPPED[type(op)].__name__}"
            case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in SWAPPED:
                yield node, f"{type(op).__name__} → {SWAPPED[type(op)].__name__}"
            case ast.UnaryOp(op=ast.Not()):
                yield node, "not dropped"
            case ast.If(test=test) | ast.IfExp(test=test) if not isinstance(test, ast.Compare):
                yield node, "condition negated"
            case ast.Constant(value=bool(value)):
                yield node, f"{value} → {not value}"
            case ast.Constant(value=int(value) | float(value)):
                yield node, f"{value} → {value + 1}"
            case ast.Return(value=ast.expr()):
                yield node, "returns None"


def change(node: ast.AST) -> None:
    """Make the change of a place."""
    match node:
        case ast.Compare(ops=[op]):
            node.ops = [SWAPPED[type(op)]()]  # type: ignore[list-item]
        case ast.BinOp(op=op) | ast.BoolOp(op=op):
            node.op = SWAPPED[type(op)]()  # type: ignore[assignment]
        case ast.UnaryOp():
            node.op = ast.UAdd()
            node.operand = ast.Call(ast.Name("bool", ast.Load()), [node.operand], [])
        case ast.If() | ast.IfExp():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case ast.Constant(value=bool(value)):
            node.value = not value
        case ast.Constant(value=int(value) | float(value)):
            node.value = value + 1
        case ast.Return():
            node.value = ast.Constant(None)


def all_mutants(packages: tuple[str, ...]) -> list[Mutant]:
    """Return all mutants of some packages."""
    found = []
    for package in packages:
        for file in sorted((ROOT / "src/rspmn" / package).rglob("*.py")):
            path = file.relative_to(ROOT)
            tree = ast.parse(file.read_text(encoding="utf-8"))
            for place, (node, what) in enumerate(places(tree)):
                found.append(Mutant(path, node.lineno, place, what))  # type: ignore[attr-defined]
    return found


def mutated(mutant: Mutant) -> str:
    """Return the source of a mutant's file."""
    tree = copy.deepcopy(ast.parse((ROOT / mutant.path).read_text(encoding="utf-8")))
    change(list(places(tree))[mutant.place][0])
    return ast.unparse(ast.fix_missing_locations(tree))


# ---- judging ---------------------------------------------------------------------------------


def judge(mutant: Mutant, tests: list[str], source: Path) -> str:
    """Return what becomes of a mutant: "killed", "late" or "survived"."""
    file = source / mutant.path.relative_to("src")
    before = file.read_text(encoding="utf-8")
    file.write_text(mutated(mutant), encoding="utf-8")
    found = verdict_of(tests)
    file.write_text(before, encoding="utf-8")
    return found


def verdict_of(tests: list[str]) -> str:
    """Run tests in a child. Heavy modules are imported before, ours only there."""
    child = os.fork()
    if child == 0:
        _run(tests)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "late"
    return "survived" if os.WEXITSTATUS(status) == SURVIVED else "killed"


def _run(tests: list[str]) -> None:
    """Run tests in this process, which ends here."""
    import pytest

    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    os.environ["CI"] = "true"
    code: int = KILLED
    try:
        code = pytest.main(["-q", "-x", "-p", "no:cacheprovider", *tests])
    finally:  # whatever is raised: nothing of the parent may be run by its child
        os._exit(SURVIVED if code == pytest.ExitCode.OK else KILLED)


@contextlib.contextmanager
def own_source() -> Iterator[Path]:
    """Yield a copy of the source that is imported instead of the real one."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        os.environ["PYTHONPATH"] = str(source)
        sys.path.insert(0, str(source))
        yield source


def main() -> None:
    """Draw mutants, judge them, print those that survive and the score."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--packages", nargs="+", default=PACKAGES)
    parser.add_argument("--data", type=Path, default=ROOT / "build/coverage/data")
    parser.add_argument("--minutes", type=float, default=600.0, help="stop after so long")
    arguments = parser.parse_args()
    coverage = Coverage(arguments.data)
    possible = all_mutants(tuple(arguments.packages))
    tested = [mutant for mutant in possible if coverage.tests(mutant)]
    random.Random(arguments.seed).shuffle(tested)
    print(f"{len(possible)} mutants, {len(tested)} of them in lines that a test runs")
    import numpy  # noqa: F401
    import pytest  # noqa: F401
    import scipy.sparse.linalg  # noqa: F401

    os.chdir(ROOT)
    verdicts: Counter[str] = Counter()
    began = time.monotonic()
    with own_source() as source:
        for mutant in tested[: arguments.mutants]:
            if time.monotonic() - began > 60 * arguments.minutes:
                break
            tests = coverage.tests(mutant)
            verdict = judge(mutant, tests, source)
            if verdict == "killed" and verdict_of(tests) != "survived":
                verdict = "not judged"  # its tests fail without it, too
            verdicts[verdict] += 1
            if verdict == "survived":
                lines = (ROOT / mutant.path).read_text(encoding="utf-8").splitlines()
                code = lines[mutant.line - 1].strip()
                print(f"{mutant.path}:{mutant.line}: {mutant.what}: {code}", flush=True)
    judged = verdicts.total() - verdicts["not judged"]
    caught = judged - verdicts["survived"]
    score = caught / max(judged, 1)
    print(f"seed {arguments.seed}: {caught} of {judged} mutants caught, {score:.1%}")
    print(f"{verdicts['late']} of them took too long; {verdicts['not judged']} were not judged")


if __name__ == "__main__":
    main()
