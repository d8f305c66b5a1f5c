"""Discrete batch-constrained Q-learning, through d3rlpy: the paper's baseline from deep learning.

Needs `pip install d3rlpy`, which brings PyTorch. States are represented by indicators of
each variable's values.
"""

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.data.episodes import Episodes, Followed
from rspmn.data.keys import joint_groups
from rspmn.envs.mdp import MDP
from rspmn.errors import DataError, MissingExtraError
from rspmn.types import Ints
from rspmn.values import Value

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Settings:
    """Hyperparameters."""

    learning_rate: float
    batch_size: int
    target_update_interval: int


#: d3rlpy's own, and settings for domains as small as these.
DEFAULTS = Settings(6.25e-5, 32, 8000)
TUNED = Settings(1e-3, 64, 200)


@dataclass(frozen=True, eq=False)
class BCQ:
    """A policy, its Q-value and the cost of training."""

    policy: Ints  # [S], the greedy action in each state of the world
    promised: float  # the mean Q-value of the greedy action over starts
    steps: int
    seconds: float


def learn_bcq(
    log: Episodes,
    mdp: MDP,
    steps: int = 50_000,
    settings: Settings = TUNED,
    seed: int = 0,
    discount: float = 0.99,
) -> BCQ:
    """Train on a log of an MDP for a number of gradient steps."""
    try:
        import d3rlpy
        import structlog
    except ImportError:
        raise MissingExtraError("BCQ needs d3rlpy: pip install d3rlpy") from None
    if steps < 1:
        raise DataError(f"BCQ: expected 1 or more steps, found {steps}")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))  # warnings only
    start = perf_counter()
    d3rlpy.seed(seed)
    shown = _indicators(mdp)
    algorithm = d3rlpy.algos.DiscreteBCQConfig(
        learning_rate=settings.learning_rate,
        batch_size=settings.batch_size,
        target_update_interval=settings.target_update_interval,
        gamma=discount,
    ).create(device="cpu:0")
    algorithm.fit(
        _dataset(d3rlpy, log, mdp, shown),
        n_steps=steps,
        n_steps_per_epoch=steps,  # with fewer steps than an epoch has nothing would be trained
        logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
        show_progress=False,
    )
    policy = np.asarray(algorithm.predict(shown), dtype=np.int64)
    promised = float(mdp.start @ algorithm.predict_value(shown, policy))
    return BCQ(policy, promised, steps, perf_counter() - start)


def _dataset(d3rlpy: Any, log: Episodes, mdp: MDP, shown: Array) -> Any:
    """Return the log as a d3rlpy data set."""
    schema = mdp.schema
    at = numbered(log, mdp.states, schema.information_sets[0])
    made = numbered(log, mdp.actions, schema.decisions)
    last = log.offsets[1:] - 1
    over, cut = np.zeros((2, log.num_steps), dtype=np.float32)
    over[last] = log.endings == Followed.END
    cut[last] = log.endings != Followed.END
    return d3rlpy.dataset.MDPDataset(
        observations=shown[at],
        actions=made[:, None],
        rewards=log.columns[schema.utility].data.astype(np.float32)[:, None],
        terminals=over,
        timeouts=cut,
        action_space=d3rlpy.ActionSpace.DISCRETE,
        action_size=len(mdp.actions),
    )


def numbered(
    log: Episodes, known: tuple[tuple[Value, ...], ...], names: tuple[str, ...]
) -> Ints:  # [num_steps]
    """Return the index of each step's values among those known."""
    columns = [log.columns[name] for name in names]
    groups = joint_groups(columns, log.num_steps)
    decoded = [column.take(groups.members()).decode() for column in columns]
    place: dict[tuple[Value | None, ...], int] = {values: k for k, values in enumerate(known)}
    numbers = np.array([place[values] for values in zip(*decoded, strict=True)])
    return np.asarray(numbers[groups.codes])


def _indicators(mdp: MDP) -> Array:  # [S, values of all variables]
    parts = []
    for column in zip(*mdp.states, strict=True):
        _, codes = np.unique(np.array(column, dtype=object).astype(str), return_inverse=True)
        parts.append(np.eye(int(codes.max()) + 1, dtype=np.float32)[codes])
    return np.hstack(parts)
