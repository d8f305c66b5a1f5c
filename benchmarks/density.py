"""Test log-likelihoods of `learn_spn` on binary data sets of the density literature.

`python benchmarks/density.py FOLDER [SET ...]` prints a table: the set, the published figure of
LearnSPN, ours, and the CPU seconds that learning took. A set is a file NAME.npz in the folder with
the arrays train, valid and test as packed bits, and their shapes (train_shape, ...). The published
figures are read from README.md in the folder ("NAME -6.110"). Learning sees the training rows only.

Without a folder there is one set, drawn here from a mixture; its published figure is the true
log-likelihood. With `--compare` it also learns with the former default, LearnSPN that splits on
single variables.
"""

import argparse
import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rspmn.circuit import Network
from rspmn.infer import log_likelihoods
from rspmn.learn import LatentTrees, LearnConfig, learn_spn
from rspmn.types import Array, Bools


def read_part(path: Path, part: str) -> Bools:  # [rows, variables]
    """Return one part of a data set."""
    with np.load(path) as found:
        width = int(found[f"{part}_shape"][1])
        return np.unpackbits(found[part], axis=1)[:, :width].astype(bool)


def published(folder: Path) -> dict[str, float]:
    """Return the figures of LearnSPN, from the first line that has some."""
    lines = (folder / "README.md").read_text(encoding="utf-8").splitlines()
    line = next((line for line in lines if "LearnSPN:" in line), "")
    return {name: float(number) for name, number in re.findall(r"(\w+) (-\d+\.\d+)", line)}


def learn(train: Bools, config: LatentTrees | LearnConfig) -> tuple[Network, float]:
    """Return the network and the CPU seconds that it took."""
    start = time.process_time()
    network, _ = learn_spn(train, config=config)
    return network, time.process_time() - start


def finite_mean(logs: Array) -> str:
    """Return the mean, or over possible rows, with the number of those that are not."""
    impossible = int(np.isneginf(logs).sum())
    mean = f"{logs[np.isfinite(logs)].mean():.3f}"
    return f"{mean} ({impossible} at -inf)" if impossible else mean


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--compare", action="store_true")
    asked = parser.parse_args()
    if asked.folder is None:
        with tempfile.TemporaryDirectory() as folder:
            draw_set(Path(folder))
            table(Path(folder), ["mixture"], asked.compare)
    else:
        sets = asked.sets or sorted(path.stem for path in asked.folder.glob("*.npz"))
        table(asked.folder, sets, asked.compare)


def draw_set(folder: Path, rows: int = 2000, variables: int = 16) -> None:
    """Write a set of rows from four classes, in each of which all variables are independent."""
    rng = np.random.default_rng(0)
    chance = rng.beta(0.5, 0.5, size=(4, variables))
    parts: dict[str, Any] = {}
    for part in ("train", "valid", "test"):
        drawn = rng.random((rows, variables)) < chance[rng.integers(4, size=rows)]
        parts |= {part: np.packbits(drawn, axis=1), f"{part}_shape": np.array(drawn.shape)}
    np.savez(folder / "mixture.npz", **parts)
    classes = np.where(drawn[:, None], chance, 1 - chance).prod(axis=2)
    (folder / "README.md").write_text(
        f"LearnSPN: mixture {np.log(classes.mean(axis=1)).mean():.3f}"
    )


def table(folder: Path, sets: Sequence[str], compare: bool) -> None:
    """Print a line for each set."""
    figures = published(folder)
    print("| set | rows | variables | LearnSPN | ours | CPU s | nodes | ms a row |", end="")
    print(" former default | CPU s | ratio |" if compare else "")
    for name in sets:
        path = folder / f"{name}.npz"
        train, test = read_part(path, "train"), read_part(path, "test")
        network, seconds = learn(train, LatentTrees())
        start = time.process_time()
        logs = log_likelihoods(network, test)
        each = 1000 * (time.process_time() - start) / len(test)
        cells = [name, *train.shape, figures.get(name, ""), finite_mean(logs), f"{seconds:.1f}"]
        cells += [len(network), f"{each:.2f}"]
        if compare:
            former, before = learn(train, LearnConfig())
            cells += [finite_mean(log_likelihoods(former, test)), f"{before:.1f}"]
            cells += [f"{seconds / before:.1f}"]
        print("|", " | ".join(map(str, cells)), "|", flush=True)


if __name__ == "__main__":
    main()
