"""The seven domains at the paper's size: MEU, true value, size, fresh log-likelihood, by seed.

`python benchmarks/domains.py docs/domains.md` writes the table; `make bench` prints it.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np

from rspmn.circuit import Network, fold_up
from rspmn.envs.domains import DOMAINS
from rspmn.envs.mdp import MDP
from rspmn.envs.taxi import taxi
from rspmn.evaluate import true_value
from rspmn.learn import LearnConfig, learn_rspmn

HEAD = (
    "| domain | steps | optimum | MEU, mean and deviation | MEU, least and most | true value of "
    "the policy, least | interface nodes | nodes | seconds | fresh log-likelihood per episode | "
    "the same, no states merged |"
)


SIZES = (
    "| padded log | interface nodes | nodes, each part counted at each place | nodes stored | "
    "interface nodes, paper's learner | nodes, each part counted at each place | nodes stored |"
)


def main() -> None:
    """Print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", nargs="?", type=Path, help="a file to write the table to")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--episodes", type=int, help="of each log; default: those of the paper")
    asked = parser.parse_args()

    def sized(mdp: MDP) -> MDP:
        return replace(mdp, episodes=asked.episodes or mdp.episodes)

    lines = [HEAD, "|" + "---|" * (HEAD.count("|") - 1)]
    for name, make in DOMAINS.items():
        mdp = sized(make())
        lines += rows(
            name, mdp, asked.seeds, (100, 300) if name == "FrozenLake" else (mdp.horizon,)
        )
        if name == "Taxi":
            lines += rows(
                "Taxi, one variable", sized(taxi(one_variable=True)), asked.seeds, (mdp.horizon,)
            )
    lines += ["", SIZES, "|" + "---|" * (SIZES.count("|") - 1)]
    lines += [unshared(sized(make())) for make in DOMAINS.values()]
    text = "\n".join(lines) + "\n"
    if asked.output:
        asked.output.write_text(INTRODUCTION + text, encoding="utf-8")
    print(text)


INTRODUCTION = """# The seven domains

Learned from logs of the paper's size by a random policy (Taxi's is better than random), five logs
each, recorded as Gymnasium does: ends are flagged, and the state after the last step is kept. The
true value is that of the learned policy in the domain itself, computed exactly. Made by
`python benchmarks/domains.py docs/domains.md`.

"""


def rows(name: str, mdp: MDP, seeds: int, horizons: tuple[int, ...]) -> list[str]:
    """Return a line for each horizon."""
    meus: dict[int, list[float]] = {h: [] for h in horizons}
    worths: dict[int, list[float]] = {h: [] for h in horizons}
    nodes, sizes, seconds, fresh, apart = [], [], [], [], []
    for seed in range(seeds):
        log = mdp.generate(mdp.episodes, mdp.horizon, seed, "final")
        start = perf_counter()
        model, info = learn_rspmn(log)
        seconds.append(perf_counter() - start)
        nodes.append(info.interfaces)
        sizes.append(len(model.template))
        other = mdp.generate(2000, mdp.horizon, 1000 + seed, "final")
        fresh.append(float(model.log_likelihood(other).mean()))
        exact, _ = learn_rspmn(log, LearnConfig.exact())
        apart.append(float(exact.log_likelihood(other).mean()))
        for horizon in horizons:
            meus[horizon].append(float(model.meu(horizon=horizon)))
            worths[horizon].append(true_value(mdp, model.policy(horizon), horizon))
    return [
        f"| {name} | {h} | {mdp.optimum(h):.4f} | {np.mean(meus[h]):.4f} ± {np.std(meus[h]):.4f} | "
        f"{min(meus[h]):.4f} to {max(meus[h]):.4f} | {min(worths[h]):.4f} | {max(nodes)} | "
        f"{max(sizes)} | {np.median(seconds):.2f} | {np.mean(fresh):.3f} | "
        f"{np.mean(apart):.3f} |"
        for h in horizons
    ]


def unshared(mdp: MDP) -> str:
    """Return how large the template is if a part counts once for each place, as in the paper."""
    log = mdp.generate(mdp.episodes, mdp.horizon, 0, "padded")
    cells = []
    for config in (LearnConfig(), LearnConfig.paper()):
        model, info = learn_rspmn(log, config)
        cells += [info.interfaces, _size(model.template), len(model.template)]
    return f"| {mdp.name} | " + " | ".join(map(str, cells)) + " |"


def _size(network: Network) -> int:
    sizes = fold_up(network, lambda _, below: 1 + sum(below))
    return sum(sizes[root] for root in network.roots)


if __name__ == "__main__":
    main()
