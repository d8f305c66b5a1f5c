"""Campaigns: many cells, run side by side; what is finished is kept."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import active_children, get_context
from pathlib import Path
from queue import SimpleQueue

from reproductions.paper_tables.cells import SMALL, Cell, Facts, run_cell
from rspmn.envs.domains import DOMAINS
from rspmn.errors import DataError
from rspmn.files import write_atomically

#: The baselines; the last two take long. "paper" is the paper's own learner.
BASELINES = ("table", "clone", "paper", "spmn", "bcq")
#: BCQ is trained for so many steps on these, also with d3rlpy's defaults and on shorter logs; on
#: the others for a tenth of them.
BCQ_DOMAINS, BCQ_STEPS = ("GridUniverse", "FrozenLake"), 50_000
#: The learning curves, up to the paper's number of episodes at its scale.
CURVE = (100, 1000, 10_000)


@dataclass(frozen=True)
class Campaign:
    """The cells of a reproduction: domains, scale, seeds and baselines."""

    domains: tuple[str, ...] = tuple(DOMAINS)
    scale: float = 1.0  # of the numbers of episodes
    seeds: int = 5
    baselines: tuple[str, ...] = ("table", "clone", "paper")

    def __post_init__(self) -> None:
        if not 0 < self.scale <= 100:
            raise DataError(f"scale: expected a number above 0, found {self.scale}")
        if self.seeds < 1:
            raise DataError(f"seeds: expected 1 or more, found {self.seeds}")

    def episodes(self, number: int) -> int:
        """Return a number of episodes at this scale."""
        return max(10, round(number * self.scale))

    @property
    def simulated(self) -> int:
        """How many episodes are simulated for an average reward."""
        return max(100, round(10_000 * min(1.0, 10 * self.scale)))

    def cells(self) -> list[Cell]:
        """Return all cells, those that take long first."""
        found: list[Cell] = []
        for domain in self.domains:
            paper = self.episodes(DOMAINS[domain]().episodes)
            ways = ["factored", "counts", *({"table"} & {*self.baselines})]
            for number in {*(n for n in CURVE if n < paper), paper}:
                simulated = self.simulated if number == paper else 0
                for seed in range(self.seeds):
                    found += [
                        Cell(w, domain, number, seed, simulated=0 if w == "counts" else simulated)
                        for w in ways
                    ]
            for way in ("clone", "paper"):
                if way in self.baselines:
                    simulated = self.simulated if way == "paper" else 0
                    found += [
                        Cell(way, domain, paper, seed, simulated=simulated)
                        for seed in range(self.seeds)
                    ]
            if "spmn" in self.baselines and domain in SMALL:
                found.append(Cell("spmn", domain, paper, 0))
            if "bcq" in self.baselines:
                found += self._bcq(domain)
        slow = {"bcq-default": 2, "bcq-tuned": 2, "spmn": 1}
        return sorted(dict.fromkeys(found), key=lambda c: (-slow.get(c.way, 0), -c.episodes))

    def _bcq(self, domain: str) -> list[Cell]:
        """Return the cells of BCQ: tuned for the curve, d3rlpy's defaults at the largest log.

        On shorter logs a fifth of the training steps is enough.
        """
        steps = max(100, round(BCQ_STEPS * min(1.0, self.scale)))
        *short, largest = (self.episodes(number) for number in CURVE)
        if domain not in BCQ_DOMAINS:
            return [Cell("bcq-tuned", domain, largest, 0, steps // 10, self.simulated)]
        kinds = [("bcq-default", largest, steps), ("bcq-tuned", largest, steps)]
        kinds += [("bcq-tuned", number, steps // 5) for number in short]
        return [Cell(way, domain, n, 0, count, self.simulated) for way, n, count in kinds]


def run_campaign(
    campaign: Campaign,
    folder: Path,
    jobs: int = 1,
    done: Callable[[int, int], None] = lambda _, __: None,
) -> list[Facts]:
    """Run all cells that are not yet in the folder; return the facts of all.

    A cell is written whole or not at all as soon as it is finished, so a campaign that was killed
    resumes where it stopped. `done` is called with the numbers of finished and of all cells.
    """
    cells = campaign.cells()
    folder.mkdir(parents=True, exist_ok=True)
    found = {cell: facts for cell in cells if (facts := _kept(cell, folder)) is not None}
    left = [cell for cell in cells if cell not in found]
    done(len(found), len(cells))
    if left:
        # fresh processes: torch and threads do not survive a fork
        context = get_context("spawn")
        workers = min(jobs, len(left))
        with ProcessPoolExecutor(workers, context, _end_with, (os.getpid(),)) as pool:
            # not `wait`: Ctrl-C while it takes the locks of all futures would leave some taken
            running: dict[Future[Facts], Cell] = {}
            finished: SimpleQueue[Future[Facts]] = SimpleQueue()
            try:
                for cell in left:
                    future = pool.submit(run_cell, cell)
                    running[future] = cell
                    future.add_done_callback(finished.put)
                for _ in left:
                    cell = running[future := finished.get()]
                    found[cell] = future.result()
                    _keep(cell, found[cell], folder)
                    done(len(found), len(cells))
            except KeyboardInterrupt:  # workers have nothing to lose: this process writes
                pool.shutdown(wait=False, cancel_futures=True)
                for worker in active_children():
                    worker.kill()
                raise
            finally:  # after an error, run none of the queued cells; leaving `with` would
                pool.shutdown(wait=True, cancel_futures=True)
    return [found[cell] for cell in cells]


def _end_with(parent: int) -> None:
    """End this process when its parent has ended, even if that was killed.

    Ctrl-C reaches all processes of a terminal. It is the parent's to answer: a worker that it stops
    while it holds a lock of the pool would keep the parent waiting for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _kept(cell: Cell, folder: Path) -> Facts | None:
    """Return the facts of a cell if it was finished before."""
    path = folder / f"{cell.name}.json"
    if not path.exists():
        return None
    facts = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(facts, dict) or facts.get("way") != cell.way:
        raise DataError(f"{path}: not a cell of this campaign: remove it, or choose another folder")
    return facts


def _keep(cell: Cell, facts: Facts, folder: Path) -> None:
    text = json.dumps(facts, indent=1, sort_keys=True)
    write_atomically(folder / f"{cell.name}.json", text.encode())
