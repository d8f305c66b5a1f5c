"""How much code `rspmn learn log.csv` runs: distinct functions entered, in how many files.

Also prints the lines and files of the package. Comprehensions, lambdas and class bodies are not
counted, nor is what runs on import.
"""

import contextlib
import io
import sys
import tempfile
import threading
from pathlib import Path
from types import CodeType, FrameType

import rspmn
from rspmn.cli import generate, learn, main

SOURCE = Path(rspmn.__file__).parent
#: Imported before anything is counted: what runs on import is not.
COMMANDS = (generate, learn)


def learn_csv(folder: Path) -> None:
    """Run the command on the log in a folder."""
    words = ["learn", str(folder / "log.csv"), "--schema", str(folder / "schema.toml")]
    with contextlib.redirect_stdout(io.StringIO()):
        if main([*words, "-o", str(folder / "model.json")]):
            sys.exit("rspmn learn failed")


def entered(folder: Path) -> set[CodeType]:
    """Return the code of all functions that the command enters."""
    found: set[CodeType] = set()

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            found.add(frame.f_code)

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        learn_csv(folder)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def report() -> None:
    """Print the figures, and functions by file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = ["generate", "FrozenLake", "--episodes", "1000", "-o", str(folder / "log.csv")]
        with contextlib.redirect_stdout(io.StringIO()):
            main([*words, "--schema", str(folder / "schema.toml")])
        codes = entered(folder)
    functions = {
        (str(Path(code.co_filename).relative_to(SOURCE)), code.co_qualname)
        for code in codes
        if code.co_filename.startswith(str(SOURCE)) and not code.co_name.startswith("<")
    }
    by_file: dict[str, int] = {}
    for file, _ in functions:
        by_file[file] = by_file.get(file, 0) + 1
    files = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")]
    lines = sum(len(text.splitlines()) for text in files)
    print(f"src/rspmn: {lines} lines in {len(files)} files")
    print(f"rspmn learn log.csv: {len(functions)} distinct functions in {len(by_file)} files")
    for file, number in sorted(by_file.items(), key=lambda item: (-item[1], item[0])):
        print(f"  {number:4}  {file}")


if __name__ == "__main__":
    report()
