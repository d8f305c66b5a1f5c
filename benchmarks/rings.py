"""Rings of machines (SysAdmin): states that are too many for a table of successors.

`python benchmarks/rings.py --machines 8 10 12 -o docs` learns from random episodes, and writes the
CPU seconds of learning and of the policy, the size of the model file, peak memory, and the policy's
value as a share of the optimum, to docs/rings_figures.md. Optimum and value are exact, by Bellman
updates with the true factors.
"""

import argparse
import resource
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from rspmn import Episodes, Policy, Schema, learn_rspmn, load
from rspmn.circuit import LatentFactors
from rspmn.infer.compiled.contraction import Contraction
from rspmn.types import Array, Ints

STEPS = 40
NONE = "none"


@dataclass(frozen=True)
class Ring:
    """A ring as in `rspmn.envs.sys_admin`, without a table of all transitions."""

    machines: int

    @cached_property
    def up(self) -> Ints:  # [states, machines]
        """The states."""
        numbers = np.arange(2**self.machines)
        return (numbers[:, None] >> np.arange(self.machines)[::-1]) & 1

    def rewards(self, action: int) -> Array:  # [states]
        """Return what an action earns; machine `action - 1` is rebooted, 0 is nothing."""
        return np.asarray(self.up.sum(axis=1) - (0.75 if action else 0.0))

    @cached_property
    def contraction(self) -> Contraction:
        """The true factors; rows of all states for action 0, then for action 1, …."""
        tables = np.array([[0.9, 0.1], [0.9, 0.1], [0.3, 0.7], [0.05, 0.95], [0.0, 1.0]])
        before = np.roll(self.up, 1, axis=1)
        rows = []
        for action in range(self.machines + 1):
            row = 2 * self.up + before
            if action:
                row[:, action - 1] = 4
            rows.append(row)
        size = len(self.up)
        factors = LatentFactors(
            size, self.up, np.arange(size), np.ones(size), (tables,) * self.machines
        )
        return Contraction(factors, np.concatenate(rows))

    def worth(self, values: Array) -> Array:  # [actions, states]
        """Return what actions are worth, given values a step later."""
        after = self.contraction(values).reshape(self.machines + 1, -1)
        return np.stack([self.rewards(a) for a in range(self.machines + 1)]) + after

    def optimum(self) -> float:
        """Return the value of the best policy, all machines up at first."""
        values = np.zeros(2**self.machines)
        for _ in range(STEPS):
            values = self.worth(values).max(axis=0)
        return float(values[-1])

    def value(self, actions: Ints) -> float:  # [steps, states]
        """Return the value of a policy."""
        values = np.zeros(2**self.machines)
        for chosen in actions[::-1]:
            values = np.take_along_axis(self.worth(values), chosen[None, :], axis=0)[0]
        return float(values[-1])

    @property
    def names(self) -> list[str]:
        """The state's variables."""
        return [f"m{k}" for k in range(self.machines)]

    def log(self, episodes: int, seed: int) -> Episodes:
        """Return episodes of random actions."""
        rng = np.random.default_rng(seed)
        up = np.ones((episodes, self.machines), dtype=bool)
        columns: dict[str, list[np.ndarray]] = {n: [] for n in (*self.names, "reboot", "u", "e")}
        for _ in range(STEPS):
            action = rng.integers(0, self.machines + 1, episodes)
            chance = np.where(up, np.where(np.roll(up, 1, axis=1), 0.95, 0.7), 0.1)
            for k, name in enumerate(self.names):
                columns[name].append(up[:, k])
            columns["reboot"].append(np.array([NONE, *self.names])[action])
            columns["u"].append(up.sum(axis=1) - 0.75 * (action > 0))
            columns["e"].append(np.arange(episodes))
            rebooted = np.arange(self.machines) == action[:, None] - 1
            up = (rng.random(up.shape) < chance) | rebooted
        table = {name: np.concatenate(parts) for name, parts in columns.items()}
        table["t"] = np.repeat(np.arange(STEPS), episodes)
        kinds = dict.fromkeys(self.names, "boolean") | {"u": "continuous"}
        schema = Schema([self.names, ["reboot"]], ["reboot"], "u", kinds=kinds)
        return Episodes.from_long(table, schema, episode="e", time="t", ending="cut")

    def actions_of(self, policy: Policy) -> Ints:  # [steps, states]
        """Return what a policy does in every state; nothing where it knows none."""
        table = {name: self.up[:, k].astype(bool) for k, name in enumerate(self.names)}
        code = {name: k for k, name in enumerate([NONE, *self.names])}
        plan = policy.plan(table, range(STEPS), otherwise=NONE)
        return np.array([[code[str(a)] for a in made] for made in plan])


def run(ring: Ring, episodes: int, seed: int, best: float) -> dict[str, float]:
    """Return what learning from one log takes, and what its policy is worth."""
    log = ring.log(episodes, seed)
    start = time.process_time()
    model, info = learn_rspmn(log)
    learned = time.process_time()
    policy = model.policy(STEPS, offer="all")
    policy.act(dict.fromkeys(ring.names, True))
    planned = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.json.gz")
        size = (Path(folder) / "model.json.gz").stat().st_size / 1e6
        saved = time.process_time()
        load(Path(folder) / "model.json.gz")
        loaded = time.process_time() - saved
    return {
        "machines": ring.machines,
        "interface nodes": model.num_state_interfaces,
        "products": info.future.spread,
        "work of an update": info.future.work,
        "learn, s": learned - start,
        "policy, s": planned - learned,
        "load, s": loaded,
        "file, MB": size,
        "peak, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "value / optimum": ring.value(ring.actions_of(policy)) / best,
    }


def main() -> None:
    """Run, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", nargs="+", type=int, default=[8, 10, 12])
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    rows = []
    for machines in options.machines:
        ring = Ring(machines)
        best = ring.optimum()
        for seed in range(options.seeds):
            rows.append(run(ring, options.episodes, seed, best))
            print(rows[-1], flush=True)
    names = list(rows[0])
    table = [" | ".join(names), "|".join(["--:"] * len(names))]
    table += [" | ".join(f"{number:.5g}" for number in row.values()) for row in rows]
    text = "\n".join(f"| {line} |" for line in table)
    if options.output is not None:
        command = "python " + " ".join([*sys.argv[:1], *sys.argv[1:]])
        head = f"# Rings of machines\n\nMade by `{command}`: {options.episodes} random episodes of "
        head += f"{STEPS} steps, CPU seconds.\n\n"
        (options.output / "rings_figures.md").write_text(head + text + "\n")


if __name__ == "__main__":
    main()
