"""Mutation testing: whether tests notice small changes of the code.

    make coverage                                  # says which test runs which line
    python tests/mutation.py --mutants 300 --seed 0

Mutants are drawn from all that can be made in lines that some test runs. Each is judged by the
tests that run its line, the fastest first. What is run when a module is imported is judged by the
tests that run anything of that module. A mutant that fails a test, or takes far longer, is killed;
those that survive are printed, to be reviewed.
"""

import argparse
import ast
import compileall
import contextlib
import copy
import importlib
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("circuit", "infer", "learn")
#: A mutant is judged by tests that took so many seconds together while coverage was measured, and
#: by so many at most.
ENOUGH_SECONDS, MOST_TESTS = 10.0, 200
#: So many are run at first: most mutants fail them, and no other module has to be imported.
FEW = 8
#: CPU seconds that a mutant may take: so many, and so many times what its tests took.
STARTING, TIMES = 10, 3
#: What is imported once, before there are mutants. It must not import rspmn.
HEAVY = (
    "numpy.random", "scipy.sparse.linalg", "scipy.sparse.csgraph", "scipy.stats", "scipy.optimize",
    "scipy.special", "pandas", "polars", "pyarrow.parquet", "pyarrow.csv", "duckdb", "narwhals",
    "hypothesis.strategies", "gymnasium",
)  # fmt: skip

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or,
    ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv,
}  # fmt: skip

#: Options of pytest; it warns of plugins that were imported before.
OPTIONS = (
    "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist",
    "-W", "ignore::pytest.PytestAssertRewriteWarning",
)  # fmt: skip


class Mutant(NamedTuple):
    """A place in a file, and what is done there."""

    path: Path
    line: int
    place: int  # which of the places of the file, in the order of `ast.walk`
    what: str
    on_import: bool  # whether it is run when the module is imported


class Coverage:
    """Which tests run which lines, and how long they take."""

    def __init__(self, folder: Path) -> None:
        from coverage import CoverageData

        found = CoverageData(str(folder / "data"))
        found.read()
        self.seconds = seconds_of_tests(folder / "tests.xml")
        self.tests_of: dict[Path, dict[int, set[str]]] = {}
        for name in found.measured_files():
            part = Path(name).parts
            path = Path(*part[len(part) - 1 - part[::-1].index("src") :])
            of_file = self.tests_of.setdefault(path, {})
            for line, contexts in found.contexts_by_lineno(name).items():
                # documents and docstrings run what is installed, so they judge no mutant
                of_file[line] = {test for test in contexts if test in self.seconds}

    def tests(self, mutant: Mutant) -> list[str]:
        """Return the tests that judge a mutant: the fastest case of each first, then the others."""
        of_file = self.tests_of.get(mutant.path, {})
        lines = of_file.values() if mutant.on_import else [of_file.get(mutant.line, set())]
        found = sorted(set().union(*lines), key=lambda test: (self.seconds[test], test))
        seen: Counter[str] = Counter()
        turn = {}
        for test in found:
            seen[test.split("[")[0]] += 1
            turn[test] = seen[test.split("[")[0]]
        found = sorted(found, key=lambda test: turn[test])[:MOST_TESTS]
        total, few = 0.0, 0
        while few < len(found) and total < ENOUGH_SECONDS:
            total += self.seconds[found[few]]
            few += 1
        return found[:few]

    def limit(self, tests: Iterable[str]) -> int:
        """Return the CPU seconds that some tests may take."""
        return STARTING + int(TIMES * sum(self.seconds[test] for test in tests))


def seconds_of_tests(report: Path) -> dict[str, float]:
    """Return how long the tests of a JUnit report took."""
    found = {}
    for case in ET.parse(report).iter("testcase"):
        module = case.attrib["classname"].replace(".", "/")
        if module.startswith("tests/") and not list(case):  # it passed
            found[f"{module}.py::{case.attrib['name']}"] = float(case.attrib["time"])
    return found


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
            case ast.Return(value=ast.expr() as value) if not _is_none(value):
                yield node, "returns None"


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


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
            later = set(run_later(tree))
            for place, (node, what) in enumerate(places(tree)):
                line = node.lineno  # type: ignore[attr-defined]
                found.append(Mutant(path, line, place, what, node not in later))
    return found


def run_later(tree: ast.AST) -> Iterator[ast.AST]:
    """Return what is in the bodies of functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for statement in node.body:
                yield from ast.walk(statement)
        elif isinstance(node, ast.Lambda):
            yield from ast.walk(node.body)


def mutated(mutant: Mutant) -> str:
    """Return the source of a mutant's file."""
    tree = copy.deepcopy(ast.parse((ROOT / mutant.path).read_text(encoding="utf-8")))
    change(list(places(tree))[mutant.place][0])
    return ast.unparse(ast.fix_missing_locations(tree))


# ---- judging ---------------------------------------------------------------------------------


class Judge:
    """Runs tests in children, on a copy of the source that is imported instead of the real one."""

    def __init__(self, source: Path, coverage: Coverage) -> None:
        self.source, self.coverage = source, coverage
        self.passes: dict[str, bool] = {}  # which tests pass without a mutant

    def verdict(self, mutant: Mutant) -> str:
        """Return what becomes of a mutant: "killed", "late", "survived" or "not judged"."""
        tests = self.coverage.tests(mutant)
        file = self.source / mutant.path.relative_to("src")
        before, times = file.read_bytes(), file.stat()
        file.write_text(mutated(mutant), encoding="utf-8")
        parts = filter(None, (tests[:FEW], tests[FEW:]))
        failed = next((f for f in map(self._failed, parts) if f is not None), None)
        file.write_bytes(before)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # what is compiled is valid again
        if failed is None:
            return "survived"
        if failed == "":
            return "late"
        if failed not in self.passes:
            self.passes[failed] = self._failed([failed]) is None
        return "killed" if self.passes[failed] else "not judged"

    def _failed(self, tests: list[str]) -> str | None:
        """Return the first test that fails in a child, if any; "" if it takes too long."""
        reads, writes = os.pipe()
        child = os.fork()
        if child == 0:
            _run(tests, self.coverage.limit(tests), writes)
        os.close(writes)
        with os.fdopen(reads) as told:
            failed = told.read()
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            return ""
        if os.WEXITSTATUS(status) == pytest.ExitCode.OK:
            return None
        return failed if failed in tests else tests[0]  # a module that cannot be imported


class _FirstFailure:
    """A plugin that tells which test fails."""

    def __init__(self, writes: int) -> None:
        self.writes, self.told = writes, False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.told:
            self.told = True
            os.write(self.writes, report.nodeid.encode())


def _run(tests: list[str], seconds: int, writes: int) -> None:
    """Run tests in this process, which ends here."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    signal.alarm(20 * seconds)  # it may wait for itself
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    code: int = pytest.ExitCode.INTERNAL_ERROR
    try:
        code = pytest.main([*OPTIONS, *tests], [_FirstFailure(writes)])
    finally:  # whatever is raised: nothing of the parent may be run by its child
        os._exit(code)


@contextlib.contextmanager
def own_source() -> Iterator[Path]:
    """Yield a copy of the source that is imported instead of the real one."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(source, quiet=2)
        sys.dont_write_bytecode = True
        os.environ |= {"CI": "true", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(source)}
        sys.path.insert(0, str(source))
        yield source


def main() -> None:
    """Draw mutants, judge them, print those that survive and the score."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--packages", nargs="+", default=PACKAGES)
    parser.add_argument("--first", type=int, default=0, help="leave so many out")
    parser.add_argument("--data", type=Path, default=ROOT / "build/coverage")
    parser.add_argument("--all", action="store_true", help="print those that were caught, too")
    parser.add_argument("--minutes", type=float, default=600.0, help="stop after so long")
    arguments = parser.parse_args()
    coverage = Coverage(arguments.data)
    possible = all_mutants(tuple(arguments.packages))
    tested = [mutant for mutant in possible if coverage.tests(mutant)]
    random.Random(arguments.seed).shuffle(tested)
    print(f"{len(possible)} mutants, {len(tested)} of them in lines that a test runs", flush=True)
    os.chdir(ROOT)
    verdicts: Counter[str] = Counter()
    began = time.monotonic()
    with own_source() as source:
        for module in HEAVY:
            importlib.import_module(module)
        judge = Judge(source, coverage)
        for mutant in tested[arguments.first :][: arguments.mutants]:
            if time.monotonic() - began > 60 * arguments.minutes:
                break
            verdict = judge.verdict(mutant)
            verdicts[verdict] += 1
            if arguments.all or verdict == "survived":
                lines = (ROOT / mutant.path).read_text(encoding="utf-8").splitlines()
                code = lines[mutant.line - 1].strip()
                print(f"{verdict}: {mutant.path}:{mutant.line}: {mutant.what}: {code}", flush=True)
    judged = verdicts.total() - verdicts["not judged"]
    caught = judged - verdicts["survived"]
    score = caught / max(judged, 1)
    print(f"seed {arguments.seed}: {caught} of {judged} mutants caught, {score:.1%}")
    print(f"{verdicts['late']} of them took too long; {verdicts['not judged']} were not judged")


if __name__ == "__main__":
    main()
