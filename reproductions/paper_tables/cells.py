"""Cells: one log, learned from in one way, with all figures that the tables need."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproductions.paper_tables.bcq import DEFAULTS, TUNED, learn_bcq
from reproductions.paper_tables.histories import plan_of_histories
from reproductions.paper_tables.sequence_spmn import learn_sequence_spmn
from rspmn.circuit import Network, fold_up
from rspmn.envs.domains import DOMAINS
from rspmn.envs.mdp import MDP
from rspmn.errors import MissingExtraError
from rspmn.evaluate import policy_array
from rspmn.evaluate.baselines import Cloned, Tabular
from rspmn.learn import LearnConfig, learn_rspmn
from rspmn.types import Ints

#: Simulated episodes for each fresh episode of the log-likelihood.
FOR_EACH_FRESH = 5
#: The domains that the paper learned the SPMN of whole sequences for.
SMALL = ("GridUniverse", "FrozenLake", "Maze")
#: Actions whose values differ by less than this share of them are equally good.
TIE = 1e-9

#: How a recurrent model is learned: as by default, by counts alone, and as the paper says.
CONFIGS = {
    "factored": LearnConfig(),
    "counts": LearnConfig(successors="counts"),
    "paper": LearnConfig.paper(),
}

Facts = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One log and one way to learn from it."""

    way: str  # one of WAYS
    domain: str
    episodes: int
    seed: int
    steps: int = 0  # of gradient descent, for those ways that have them
    simulated: int = 0  # episodes, for the average reward; 0: only the figures of the curves

    @property
    def name(self) -> str:
        """The name of its file."""
        return "-".join(str(part) for part in asdict(self).values())


def horizons(domain: str) -> tuple[int, ...]:
    """Return the horizons that values are for, the main one first.

    The paper's FrozenLake figures are not those of its 8 steps.
    """
    return (100, 8, 300) if domain == "FrozenLake" else (DOMAINS[domain]().horizon,)


def run_cell(cell: Cell) -> Facts:
    """Run one cell; return its facts, all plain numbers and text."""
    mdp = DOMAINS[cell.domain]()
    return asdict(cell) | WAYS[cell.way](cell, mdp)


# ---- the ways ------------------------------------------------------------------------


def _rspmn(cell: Cell, mdp: MDP) -> Facts:
    log = mdp.generate(cell.episodes, mdp.horizon, cell.seed, "final")
    model, info = learn_rspmn(log, CONFIGS[cell.way], cell.seed)
    seconds = info.seconds
    initial = sum(seconds[stage] for stage in ("windows", "structure", "interfaces"))
    start = perf_counter()
    model.meu(horizon=horizons(cell.domain)[0])
    facts: Facts = {
        "top": len(model.top),
        "template": len(model.template),
        "unshared": _unshared(model.template),
        "interfaces": info.interfaces,
        "initial_seconds": initial,
        "final_seconds": sum(seconds.values()) - initial,
        "meu_seconds": perf_counter() - start,
    }
    for horizon in _horizons(cell):
        policy = policy_array(mdp, model.policy(horizon), horizon)
        promised = float(model.meu(horizon=horizon))
        facts |= _valued(mdp, policy, horizon, promised, cell)
    if not cell.simulated:
        return facts
    fresh = mdp.generate(cell.simulated // FOR_EACH_FRESH, mdp.horizon, 10_000 + cell.seed, "final")
    facts["log_likelihood"] = float(model.log_likelihood(fresh).mean())
    if cell.seed == 0:
        steps = [1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 300]
        facts["curve"] = {
            "horizons": steps,
            "meu": [float(model.meu(horizon=h)) for h in steps],
            "exact": [mdp.optimum(h) for h in steps],
        }
    return facts


def _table(cell: Cell, mdp: MDP) -> Facts:
    start = perf_counter()
    log = mdp.generate(cell.episodes, mdp.horizon, cell.seed, "final")
    drawn = perf_counter()
    table = Tabular.fit(log)
    facts: Facts = {}
    for horizon in _horizons(cell):
        policy = table.policy_for(mdp, horizon)
        facts |= _valued(mdp, policy, horizon, table.meu(horizon), cell)
    return facts | {"seconds": perf_counter() - drawn, "drawing_seconds": drawn - start}


def _clone(cell: Cell, mdp: MDP) -> Facts:
    log = mdp.generate(cell.episodes, mdp.horizon, cell.seed, "final")
    start = perf_counter()
    policy = Cloned.fit(log).policy_for(mdp)
    facts: Facts = {"seconds": perf_counter() - start}
    for horizon in horizons(cell.domain):
        facts[f"worth_{horizon}"] = mdp.evaluate(policy, horizon)
    return facts


def _spmn(cell: Cell, mdp: MDP) -> Facts:
    log = mdp.generate(cell.episodes, mdp.horizon, cell.seed, "padded")
    # no limit of time: what is learned must not depend on the machine
    budget = replace(LearnConfig.paper(), max_nodes=1_000_000)
    model, info = learn_sequence_spmn(log, budget, cell.seed)
    start = perf_counter()
    meu = float(model.meu())
    seconds = perf_counter() - start
    promised, worth = plan_of_histories(log, mdp)
    return {
        f"meu_{mdp.horizon}": meu,
        "nodes": info.nodes,
        "unshared": _unshared(model.network),
        "seconds": info.seconds,
        "meu_seconds": seconds,
        "histories_meu": promised,
        "histories_worth": worth,
        "stopped_by": info.stopped_by,
    }


def _bcq(cell: Cell, mdp: MDP) -> Facts:
    log = mdp.generate(cell.episodes, mdp.horizon, cell.seed, "final")
    try:
        import torch
    except ImportError:
        raise MissingExtraError("BCQ needs d3rlpy: pip install d3rlpy") from None
    torch.set_num_threads(1)  # cells run side by side, each in a process of its own
    settings = TUNED if cell.way == "bcq-tuned" else DEFAULTS
    found = learn_bcq(log, mdp, cell.steps, settings, cell.seed)
    policy = np.eye(len(mdp.actions))[found.policy]
    facts: Facts = {"promised": found.promised, "seconds": found.seconds}
    for horizon in horizons(cell.domain):
        facts[f"worth_{horizon}"] = mdp.evaluate(policy, horizon)
        facts[f"reward_{horizon}"] = _simulated(mdp, policy, horizon, cell)
    return facts


WAYS: dict[str, Callable[[Cell, MDP], Facts]] = {
    "factored": _rspmn,
    "counts": _rspmn,
    "paper": _rspmn,
    "table": _table,
    "clone": _clone,
    "spmn": _spmn,
    "bcq-default": _bcq,
    "bcq-tuned": _bcq,
}


# ---- what they share -----------------------------------------------------------------


def _horizons(cell: Cell) -> tuple[int, ...]:
    return horizons(cell.domain) if cell.simulated else horizons(cell.domain)[:1]


def _valued(mdp: MDP, policy: Ints, horizon: int, promised: float, cell: Cell) -> Facts:
    """Return a policy's expected value, true value, simulated reward and deviations."""
    facts = {f"meu_{horizon}": promised, f"worth_{horizon}": mdp.evaluate(policy, horizon)}
    if not cell.simulated:
        return facts
    raw, worse = _deviation(mdp, policy[0], horizon)
    return facts | {
        f"reward_{horizon}": _simulated(mdp, policy, horizon, cell),
        f"deviation_{horizon}": raw,
        f"worse_{horizon}": worse,
    }


def _simulated(mdp: MDP, policy: NDArray[Any], horizon: int, cell: Cell) -> float:
    """Return the average reward of simulated episodes."""
    log = mdp.generate(cell.simulated, horizon, 20_000 + cell.seed, "flags", policy)
    return float(log.columns[mdp.schema.utility].data.sum() / cell.simulated)


def _deviation(mdp: MDP, policy: Ints, horizon: int) -> tuple[float, float]:
    """Return the percentages of states where the first action differs, and where it is worse.

    The paper counts where it differs from that of one optimal policy.
    """
    values = mdp.action_values(horizon)
    best = values.max(axis=1)
    open_states = np.flatnonzero(~mdp.terminal)
    chosen = values[np.arange(len(values)), policy]
    worse = chosen < best - TIE * np.maximum(1.0, np.abs(best))
    first = np.argmax(values >= (best - TIE * np.maximum(1.0, np.abs(best)))[:, None], axis=1)
    share = 100 / len(open_states)
    raw = float((policy != first)[open_states].sum() * share)
    return raw, float(worse[open_states].sum() * share)


def _unshared(network: Network) -> int:
    """Return the number of nodes if a shared part counts at each place, as in the paper."""
    sizes = fold_up(network, lambda _, below: 1 + sum(below))
    return sum(sizes[root] for root in dict.fromkeys(network.roots))
