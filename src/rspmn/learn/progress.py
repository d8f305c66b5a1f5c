"""Bars that show how far learning has come."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rspmn.learn.config import Progress, Report

#: No bar is shown before so many seconds.
DELAY = 0.5


@contextmanager
def progress_bar(progress: bool | None, report: Report | None) -> Iterator[Report | None]:
    """Give the progress callback of a run of learning.

    Parameters
    ----------
    progress
        Whether to show a bar; None: on a terminal and in notebooks.
    report
        A callback of the caller's, which is called too.
    """
    if not (_has_viewer() if progress is None else progress):
        yield report
        return
    from tqdm import tqdm

    with tqdm(desc="learning", unit=" rows", unit_scale=True, leave=False, delay=DELAY) as bar:

        def both(found: Progress) -> None:
            bar.total = found.rows
            bar.set_postfix(nodes=found.nodes, refresh=False)
            bar.update(found.rows_done - bar.n)
            if report is not None:
                report(found)

        yield both


def _has_viewer() -> bool:
    """Tell whether somebody looks: at a terminal, or at a notebook."""
    return (sys.stderr is not None and sys.stderr.isatty()) or "ipykernel" in sys.modules
