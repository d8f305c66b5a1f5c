"""The picture of the README: the states of a lake, and where the best actions lead.

Run it with `.venv/bin/python examples/lake_picture.py docs/img/lake_states.png`.
"""

import sys
from pathlib import Path

import rspmn
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.explain.picture import as_file
from rspmn.plot import plot_states


def main(target: str) -> None:
    """Learn from short walks, and draw the graph of states."""
    model, _ = rspmn.learn_rspmn(frozen_lake().generate(100_000, 8, 0, "final"))
    Path(target).write_bytes(as_file(plot_states(model.policy(horizon=100)), "png"))


if __name__ == "__main__":
    main(sys.argv[1])
