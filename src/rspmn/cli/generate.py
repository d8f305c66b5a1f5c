"""Commands about the domains: list them, generate logs of them, reproduce the paper's tables.

The code of the tables is in `reproductions/` of a checkout.
"""

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import rspmn
from rspmn.cli.console import print_table
from rspmn.cli.framework import Arguments
from rspmn.cli.streams import is_printed
from rspmn.data.sources.engine import shown
from rspmn.data.write import write_episodes
from rspmn.envs.domains import WORLDS
from rspmn.envs.mdp import MDP
from rspmn.errors import DataError, did_you_mean

#: The root of the repository, if rspmn was installed from a checkout with `pip install --editable`.
CHECKOUT = Path(rspmn.__file__).parents[2]


def domain_of(name: str) -> MDP:
    """Return a domain by its name, in any case."""
    found = {known.lower(): known for known in WORLDS}.get(name.lower())
    if found is None:
        raise DataError(f"unknown domain {name!r}: {did_you_mean(name, WORLDS)}")
    return WORLDS[found]()


def list_domains(arguments: Arguments) -> None:
    """List the domains with their sizes, optima and logging policies' values."""
    rows = []
    for name in WORLDS:
        mdp = domain_of(name)
        rows.append({
            "domain": name,
            "state variables": len(mdp.schema.information_sets[0]),
            "states": len(mdp.states),
            "actions": len(mdp.actions),
            "episodes": mdp.episodes,
            "steps": mdp.horizon,
            "optimum": round(mdp.optimum(mdp.horizon), 6),
            "logging policy": round(mdp.evaluate(None, mdp.horizon), 6),
        })  # fmt: skip
    if arguments.json:
        print(json.dumps(rows))
        return
    print_table({name: [row[name] for row in rows] for name in rows[0]})


def generate(arguments: Arguments) -> None:
    """Generate a log of a domain, and its schema."""
    mdp = domain_of(arguments.domain)
    episodes = mdp.episodes if arguments.episodes is None else arguments.episodes
    steps = mdp.horizon if arguments.steps is None else arguments.steps
    if arguments.wide and arguments.layout == "final":
        raise DataError(
            "a wide log has no place for the state after the last step: use --layout padded, flags "
            "or terminal_row"
        )
    if arguments.files < 1 or 1 < arguments.files > episodes:
        raise DataError(f"--files: expected 1 to {episodes}, the episodes, found {arguments.files}")
    total = 0
    paths = _paths(arguments.output, arguments.files)
    for path in paths[1:] and paths:
        if Path(path).is_file() and not arguments.force:
            raise DataError(f"{path} already exists; use --force to overwrite it")
    first = np.linspace(0, episodes, len(paths) + 1).astype(np.int64)
    for k, path in enumerate(paths):
        seed = arguments.seed if len(paths) == 1 else np.random.default_rng([arguments.seed, k])
        log = mdp.generate(int(first[k + 1] - first[k]), steps, seed, arguments.layout)
        log = replace(log, ids=log.ids + first[k])
        write_episodes(log, path, arguments.wide)
        total += log.num_steps
    if arguments.schema:
        mdp.schema.save(arguments.schema)
    facts = {"file": arguments.output, "episodes": episodes, "steps": total}
    if arguments.json:
        print(json.dumps(facts))
    elif not arguments.quiet:
        print(f"{shown(paths)}: {episodes} episodes, {total} steps of {mdp.name}")


def _paths(output: str, files: int) -> list[str]:
    """Return the names of the files."""
    if files == 1:
        return [output]
    path = Path(output)
    if is_printed(path):
        raise DataError(f"--files: expected 1 for standard output, found {files}: name a file")
    digits = len(str(files - 1))
    return [str(path.with_stem(f"{path.stem}-{k:0{digits}}")) for k in range(files)]


def reproduce(arguments: Arguments) -> None:
    """Run `reproductions/paper_tables` of the checkout that rspmn is imported from."""
    if not (CHECKOUT / "reproductions" / "paper_tables").is_dir():
        raise DataError(
            "the reproductions are not part of the installed package: clone the repository of "
            "rspmn, run `pip install --editable '.[plot]'` in it, and repeat the command"
        )
    sys.path.append(str(CHECKOUT))
    importlib.import_module("reproductions.paper_tables.command").reproduce(arguments)
