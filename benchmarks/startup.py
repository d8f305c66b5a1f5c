"""The size of the packages that rspmn needs, and the time of an import, of `--help` and of `act`.

Sizes are of the core's own requirements and of theirs, as installed here.
"""

import re
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import distribution

from rspmn.envs.paper_grid import paper_grid

TARGETS = {"packages": 350, "import": 0.3, "help": 0.3, "act": 1.5}


def core_packages() -> set[str]:
    """Return the packages that the core needs, theirs included."""
    found: set[str] = set()
    waiting = ["rspmn"]
    for name in waiting:
        if name not in found:
            found.add(name)
            for line in distribution(name).requires or ():
                needed, _, marker = line.partition(";")
                if "extra" not in marker and "win32" not in marker and "Windows" not in marker:
                    waiting.append(re.split(r"[<>=!~\[ (]", needed.strip())[0].lower())
    return found


def megabytes(name: str) -> float:
    """Return the size of a package's files."""
    files = distribution(name).files or ()
    return sum(p.stat().st_size for f in files if (p := f.locate()).is_file()) / 1e6  # type: ignore[attr-defined]


def seconds(*command: str) -> float:
    """Return how long a program takes, the median of nine."""
    taken = []
    for _ in range(9):
        clock = time.perf_counter()
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
        taken.append(time.perf_counter() - clock)
    return statistics.median(taken)


def seconds_to_act() -> float:
    """Return how long a decision takes in the paper's grid, loading the model included."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/grid.json"
        paper_grid().save(path)
        return seconds("-m", "rspmn", "act", path, "--state", "x=0", "y=0", "--horizon", "4")


def main() -> None:
    """Measure and print."""
    packages = core_packages()
    found = {
        "packages": sum(map(megabytes, packages)),
        "import": seconds("-c", "import rspmn"),
        "help": seconds("-m", "rspmn", "--help"),
        "act": seconds_to_act(),
    }
    print(f"core: {', '.join(sorted(packages))}")
    for name, value in found.items():
        unit = "MB" if name == "packages" else "s"
        verdict = "met" if value <= TARGETS[name] else "MISSED"
        print(f"{name}: {value:.3g} {unit}, target {TARGETS[name]}: {verdict}")


if __name__ == "__main__":
    main()
