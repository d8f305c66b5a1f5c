"""Progress bars, on a terminal only."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rspmn.learn import Progress
from rspmn.learn.config import Report


@contextmanager
def learning_bar(quiet: bool = False) -> Iterator[Report | None]:
    """Show how much of the rows has been learned from; nothing where nobody looks."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    with tqdm(desc="learning", unit=" rows", unit_scale=True, leave=False) as bar:

        def report(progress: Progress) -> None:
            bar.total = progress.rows
            bar.set_postfix(nodes=progress.nodes, refresh=False)
            bar.update(progress.rows_done - bar.n)

        yield report
