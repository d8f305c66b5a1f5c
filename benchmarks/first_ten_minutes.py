"""The first ten minutes with a log of one's own: what each command takes.

python benchmarks/first_ten_minutes.py

The log is one that nobody prepared: machines looked at once a week, with dates, words, empty cells,
costs in euros, a column that does not matter, and no column that says why episodes ended.
"""

import csv
import datetime as dt
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HEADER = [
    "machine_id", "date", "line", "status", "temperature", "hours_since_service", "operator",
    "action", "cost_eur", "remark",
]  # fmt: skip
STATE = ["status=leaking", "temperature=80", "hours_since_service=1500"]
COMMANDS = [
    "schema maintenance.csv -o schema.toml",
    "doctor maintenance.csv --schema schema.toml",
    "learn maintenance.csv --schema schema.toml -o machines.json",
    f"act machines.json --state {' '.join(STATE)} --horizon 26",
    f"explain machines.json --state {' '.join(STATE)} --horizon 26",
    "evaluate machines.json --log maintenance.csv",
    "policy machines.json --horizon 26 --to python -o policy.py",
    "report machines.json --log maintenance.csv --horizon 26 -o machines.html",
]


def write_log(path: Path, machines: int = 120, weeks: int = 40) -> None:
    """Write the log."""
    rng, start = random.Random(3), dt.date(2025, 1, 6)
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(HEADER)
        for machine in range(machines):
            hours, line = rng.randint(0, 200), rng.choice("ABC")
            wear = hours / 800
            for week in range(weeks):
                if rng.random() < 0.02:
                    continue
                seen = "ok" if wear < 0.4 else "noisy" if wear < 0.75 else "leaking"
                status = rng.choice(["ok", "noisy", "leaking"]) if rng.random() < 0.1 else seen
                heat = round(55 + 30 * wear + rng.gauss(0, 2), 1)
                action = rng.choices(["none", "lubricate", "overhaul"], [0.7, 0.2, 0.1])[0]
                fails = action != "overhaul" and rng.random() < max(0, wear - 0.3) ** 2
                cost = {"none": 0, "lubricate": 80, "overhaul": 600}[action] + 2500 * fails
                rows.writerow([
                    f"M{machine:03d}", start + dt.timedelta(weeks=week), line,
                    "" if rng.random() < 0.03 else status, "" if rng.random() < 0.08 else heat,
                    hours, rng.choice(["Ana", "Ben", "Caro"]), action, f"{cost:.2f}",
                    "breakdown" if fails else "",
                ])  # fmt: skip
                if fails or action == "overhaul":
                    wear, hours = 0.02, 0
                elif action == "lubricate":
                    wear = max(0, wear - 0.05)
                wear, hours = min(1, wear + rng.uniform(0, 0.08)), hours + rng.randint(80, 168)


def main() -> None:
    """Run all commands, and print what each takes."""
    script = [sys.executable, "-c", "from rspmn.cli import main; raise SystemExit(main())"]
    print("| command | seconds of CPU | seconds |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        write_log(Path(folder) / "maintenance.csv")
        for words in COMMANDS:
            before, began = _children(), time.perf_counter()
            subprocess.run(
                [*script, *words.split()], cwd=folder, env=os.environ, check=True,
                stdout=subprocess.DEVNULL,
            )  # fmt: skip
            print(f"| `rspmn {words}` | {_children() - before:.1f} "
                  f"| {time.perf_counter() - began:.1f} |", flush=True)  # fmt: skip
            if words.startswith("schema"):  # the one line that the log cannot say
                schema = Path(folder) / "schema.toml"
                text = schema.read_text(encoding="utf-8")
                schema.write_text(text.replace("[log]\n", '[log]\nending = "cut"\n'), "utf-8")


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
