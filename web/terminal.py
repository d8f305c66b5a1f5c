"""Pictures of the command line for docs/img: commands run in a terminal, written as SVG.

make screenshots
"""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

IMAGES = Path(__file__).parent.parent / "docs" / "img"
WIDTH = 100
#: Dark paper, and the colours of common terminals on it.
THEME = TerminalTheme(
    (22, 24, 28), (232, 230, 225),
    [(54, 58, 65), (239, 139, 132), (143, 201, 122), (215, 154, 54), (124, 184, 255),
     (199, 146, 234), (118, 201, 201), (232, 230, 225)],
    [(125, 130, 140), (255, 160, 150), (170, 220, 150), (240, 180, 90), (150, 200, 255),
     (215, 170, 245), (150, 220, 220), (255, 255, 255)],
)  # fmt: skip
#: What is made before the pictures are.
BEFORE = ["generate FrozenLake --episodes 5000 --steps 50 -o log.csv"]
#: The commands of each picture, and how many lines of each are shown.
PICTURES: dict[str, list[tuple[str, int]]] = {
    "terminal_help": [("--help", 60)],
    "terminal_learn": [
        ("schema log.csv -o schema.toml", 9),
        ("doctor log.csv --schema schema.toml", 24),
        ("learn log.csv --schema schema.toml -o lake.json", 12),
    ],
    "terminal_act": [
        ("act lake.json --state cell=14 --horizon 100", 12),
        ("explain lake.json --state cell=14 --horizon 100", 30),
    ],
    "terminal_errors": [
        ("act lake.json --state cel=14", 6),
        ("act lake.json --state cell=5 --horizon 100", 8),
        ("learn log.csv --schema schema.toml -o lake.json", 4),
    ],
}


def main() -> None:
    """Make all pictures."""
    with tempfile.TemporaryDirectory() as folder:
        for words in BEFORE:
            shown(words, folder)
        for name, commands in PICTURES.items():
            console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
            for words, lines in commands:
                console.print(Text.from_ansi(f"\033[32m$\033[0m rspmn {words}"))
                found = shown(words, folder).splitlines()
                console.print(Text.from_ansi("\n".join(found[:lines])), overflow="fold")
                if len(found) > lines:
                    console.print(f"[dim]… {len(found) - lines} more lines")
                console.print()
            svg = console.export_svg(title="rspmn", theme=THEME, unique_id=name)
            (IMAGES / f"{name}.svg").write_text(without_fonts(svg), encoding="utf-8")


def shown(words: str, folder: str) -> str:
    """Return what a command shows in a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, WIDTH, 0, 0))
    script = [sys.executable, "-c", "from rspmn.cli import main; raise SystemExit(main())"]
    settings = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(WIDTH)}
    settings.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [*script, *words.split()], cwd=folder, env=settings,
        stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True,
    )  # fmt: skip
    os.close(theirs)
    found = b""
    while True:
        select.select([ours], [], [])
        try:
            part = os.read(ours, 65536)
        except OSError:  # the terminal was closed
            break
        if not part:
            break
        found += part
    process.wait()
    os.close(ours)
    return last_written(found.decode())


def last_written(text: str) -> str:
    """Return the lines of a terminal: a bar that was overwritten is left out."""
    lines = (line.rsplit("\r", 1)[-1] for line in text.replace("\r\n", "\n").split("\n"))
    return re.sub(r"\033\[\d*[A-HJKST]|\033\[\?\d+[hl]", "", "\n".join(lines)).strip("\n")


def without_fonts(svg: str) -> str:
    """Return a picture that fetches no font: that of the reader's system is used."""
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL).replace(
        "Fira Code", "ui-monospace"
    )


if __name__ == "__main__":
    main()
