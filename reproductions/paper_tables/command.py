"""The command `rspmn reproduce`: run the campaign and write the report."""

import json
import sys
from pathlib import Path

from reproductions.paper_tables.campaign import BASELINES, Campaign, run_campaign
from reproductions.paper_tables.report import write_report
from rspmn.cli.framework import Arguments
from rspmn.cli.generate import domain_of
from rspmn.envs.domains import DOMAINS
from rspmn.errors import DataError, ModelFileError, did_you_mean


def reproduce(arguments: Arguments) -> None:
    """Run the cells that are not finished, and write the report."""
    names = [domain_of(name).name for name in arguments.domains or DOMAINS]
    for name in names:
        if name not in DOMAINS:
            raise DataError(f"{name} is not one of the paper's: {', '.join(DOMAINS)}")
    baselines = tuple(dict.fromkeys(arguments.baselines))
    for name in baselines:
        if name not in BASELINES:
            raise DataError(f"unknown baseline {name!r}: {did_you_mean(name, BASELINES)}")
    campaign = Campaign(
        tuple(name for name in DOMAINS if name in names),
        arguments.scale,
        arguments.seeds,
        baselines,
    )
    folder = Path(arguments.output)
    try:
        path, cells = _run(campaign, folder, arguments)
    except OSError as error:
        raise ModelFileError(f"{folder}: cannot be written: {error.strerror}") from None
    if arguments.json:
        print(json.dumps({"report": str(path), "cells": cells}))
    else:
        print(f"{path}: {cells} cells; tables as CSV, plots and cells are in {folder}/reproduction")


def _run(campaign: Campaign, folder: Path, arguments: Arguments) -> tuple[Path, int]:
    from tqdm import tqdm

    kept = folder / "reproduction" / "cells"
    quiet = arguments.json or not sys.stderr.isatty()
    with tqdm(desc="cells", disable=quiet, leave=False) as bar:

        def done(finished: int, total: int) -> None:
            bar.total = total
            bar.update(finished - bar.n)

        try:
            facts = run_campaign(campaign, kept, arguments.jobs, done)
        except KeyboardInterrupt:
            number = len(list(kept.glob("*.json")))
            print(
                f"rspmn: interrupted; {number} finished cells are kept in {kept}, and the same "
                "command goes on from there",
                file=sys.stderr,
            )
            sys.exit(130)
    return write_report(campaign, facts, folder), len(facts)
