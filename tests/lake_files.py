"""Files of a lake that commands are tried on."""

from pathlib import Path

from rspmn.data.write import write_episodes
from rspmn.envs.domains import DOMAINS
from rspmn.learn import learn_rspmn


def write_lake(folder: Path) -> Path:
    """Write 300 walks, their schema and a model of them; return the folder."""
    log = DOMAINS["FrozenLake"]().generate(300, 20, 0, "final")
    write_episodes(log, folder / "log.csv")
    log.schema.save(folder / "s.toml")
    learn_rspmn(log)[0].save(folder / "model.json")
    return folder
