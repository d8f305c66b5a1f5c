"""Models of IPPC instances with interface nodes merged by value: sizes, losses, true values.

`python benchmarks/merge_by_value.py -o docs` learns from random episodes of instances whose states
can be enumerated, merges interface nodes within several tolerances, and writes
docs/merge_figures.md. It needs the extra `rddl`.
"""

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ippc import World, timed, written

from rspmn import RSPMN, learn_rspmn
from rspmn.evaluate import true_value

CASES = ["SkillTeaching-3", "CrossingTraffic-3"]
#: Tolerances, as shares of the value of the start.
SHARES = [1e-6, 1e-3, 1e-2]


@dataclass(frozen=True)
class Row:
    """A model, merged or not."""

    case: str
    episodes: int
    tolerance: str
    nodes: int
    template: int  # nodes of the template
    file: float  # MB
    seconds: float  # to merge
    loss: str  # from the start, in the model
    worst: str  # in any interface node, in the model
    share: float  # of the policy, of the way from random to optimal


def row(world: World, episodes: int, model: RSPMN, tolerance: float) -> Row:
    """Merge and measure; with a tolerance below 0, only measure."""
    steps, loss, worst, seconds, small = world.mdp.horizon, 0.0, 0.0, 0.0, model
    if tolerance >= 0:
        (small, info), seconds = timed(lambda: model.merged(tolerance, steps))
        loss, worst = info.loss, info.worst
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        small.save(path)
        size = path.stat().st_size / 1e6
    share = world.share(true_value(world.mdp, small.policy(steps), steps))
    shown = "as learned" if tolerance < 0 else f"{tolerance:.2g}"
    return Row(world.mdp.name, episodes, shown, small.num_state_interfaces, len(small.template),
               size, seconds, f"{loss:.2g}", f"{worst:.2g}", share)  # fmt: skip


INTRODUCTION = """# Interface nodes merged by value

Made by `{command}`. Models are learned from random episodes of instances of IPPC 2011; decisions
that were never tried in a state are added (`offering("all")`), so that all offer the same. The
first row of each is the model as learned, the others are `model.merged(tolerance, horizon)` with
the instance's own horizon. Losses are exact: what is lost in the learned model by deciding as the
merged one does. "share" is the exact value of the policy in the instance, 0 for the random policy
and 1 for the optimal one. Seconds are CPU seconds.

"""

HEAD = (
    "instance", "episodes", "tolerance", "interface nodes", "nodes of the template", "file, MB",
    "seconds", "loss from the start", "largest loss", "share",
)  # fmt: skip


def main() -> None:
    """Run, print, and write the table after each row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", default=CASES, help="such as Elevators-2")
    parser.add_argument("--episodes", nargs="+", type=int, default=[100])
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    rows: list[Row] = []
    for case in options.cases:
        world = World(case)
        for episodes in options.episodes:
            log = world.mdp.generate(episodes, world.mdp.horizon, 0, "final")
            model = learn_rspmn(log)[0].offering("all")
            size = abs(model.meu(horizon=world.mdp.horizon))
            for tolerance in [-1.0, *(share * size for share in SHARES)]:
                rows.append(row(world, episodes, model, tolerance))
                print(rows[-1], flush=True)
                if options.output is not None:
                    text = INTRODUCTION.format(command=" ".join(["python", *sys.argv]))
                    path = options.output / "merge_figures.md"
                    path.write_text(text + written(HEAD, rows), encoding="utf-8")


if __name__ == "__main__":
    main()
