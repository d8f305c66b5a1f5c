"""The command that writes the page of a model."""

import json
import time
from pathlib import Path

from rspmn.cli.framework import Arguments
from rspmn.cli.options import log_options
from rspmn.cli.queries import recurrent
from rspmn.cli.streams import check_ending
from rspmn.data.episodes import Episodes
from rspmn.doctor import Finding, examine
from rspmn.model_file import load
from rspmn.report import report_data, write_report


def report(arguments: Arguments) -> None:
    """Write a page about a model: a card and an explorer in one file."""
    check_ending(arguments.output, ".html", ".htm")
    began, model = time.perf_counter(), load(arguments.model)
    log, findings = None, list[Finding]()
    if arguments.log is not None:
        schema, given = recurrent(model, arguments, "--log").schema, log_options(arguments)
        log = Episodes.from_log(arguments.log, schema, **given)
        findings = examine(arguments.log, schema, **given).findings
    data = report_data(
        model, log, arguments.horizon, arguments.discount, findings=findings,
        title=arguments.title or "", source=arguments.model, most_nodes=arguments.most_nodes,
    )  # fmt: skip
    write_report(arguments.output, data)
    size = Path(arguments.output).stat().st_size
    facts = {"page": arguments.output, "states": len(data["nodes"]), "left_out": data["leftOut"],
             "warnings": len(data["warnings"]), "bytes": size}  # fmt: skip
    if arguments.json:
        print(json.dumps(facts))
        return
    if arguments.quiet:
        return
    left = f" of {len(data['nodes']) + data['leftOut']}" if data["leftOut"] else ""
    print(
        f"{arguments.output}: {facts['states']}{left} states, {facts['warnings']} warnings and "
        f"notes, {size / 1e6:.1f} MB, {time.perf_counter() - began:.1f} s; open it in a browser"
    )
