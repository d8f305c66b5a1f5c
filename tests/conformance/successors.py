"""What every weighing of successors must satisfy."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rspmn.data.episodes import Episodes, Followed
from rspmn.envs.frozen_lake import frozen_lake
from rspmn.envs.maze import maze
from rspmn.learn import LearnConfig, learn_rspmn, refit
from rspmn.learn.successors import Counts, Successors, SuccessorWeights, Transitions
from rspmn.schema import Schema
from rspmn.types import Bools


def check_successors(successors: Successors) -> None:
    """Check that a weighing can be used as `LearnConfig(successors=successors)`.

    >>> from rspmn.learn import Counts
    >>> check_successors(Counts())
    """
    for name, log in _logs().items():
        transitions = transitions_in(log)
        before = _copy(transitions)
        found = successors(transitions)
        assert isinstance(found, tuple), f"{name}: expected (weights, info), found {found!r}"
        assert len(found) == 2, f"{name}: expected (weights, info), found {len(found)} values"
        weights, _ = found
        assert _same(before, _copy(transitions)), f"{name}: the transitions were changed"
        _check_weights(name, transitions, weights)
        _check_order(name, successors, transitions, weights)
        _check_learning(name, successors, log)


def _check_weights(name: str, transitions: Transitions, weights: SuccessorWeights) -> None:
    """Check the form of the weights, and that all that was logged is possible."""
    sites, edges = transitions.sites, len(weights.interfaces)
    assert isinstance(weights, SuccessorWeights), f"{name}: expected SuccessorWeights"
    assert weights.starts.shape == (sites + 1,), f"{name}: starts must have one for each site + 1"
    assert (weights.starts[0], weights.starts[-1]) == (0, edges), f"{name}: starts of 0 to edges"
    assert (np.diff(weights.starts) > 0).all(), f"{name}: a site without successors"
    assert weights.weights.shape == weights.counts.shape == (edges,), f"{name}: one of each an edge"
    inside = (weights.interfaces >= 0) & (weights.interfaces < transitions.interfaces)
    assert inside.all(), f"{name}: interface nodes that do not exist"
    key = weights.site * transitions.interfaces + weights.interfaces
    assert (np.diff(key) > 0).all(), f"{name}: interface nodes of a site must be sorted, each once"
    assert (weights.weights > 0).all(), f"{name}: weights must be above 0; leave the edge out"
    total = np.bincount(weights.site, weights.weights, sites)
    assert np.allclose(total, 1, rtol=0, atol=1e-9), f"{name}: weights must sum to 1 at every site"
    logged = np.zeros((sites, transitions.interfaces))
    np.add.at(logged, (transitions.site, transitions.to), transitions.counts)
    counted = np.zeros_like(logged)
    counted[weights.site, weights.interfaces] = weights.counts
    assert np.allclose(counted, logged), f"{name}: counts must be those of the transitions"
    if weights.strength is not None:
        over = -1 if transitions.end is None else transitions.end
        _check_strength(name, weights, weights.interfaces != over)


def _check_strength(name: str, weights: SuccessorWeights, on: Bools) -> None:
    """Check that weights = (counts + strength · prior) / (steps + strength), priors not below 0.

    That is asked of what goes on, `on`: whether an episode ends may be estimated by counts alone.
    """
    assert weights.strength is not None
    site, sites = weights.site, len(weights.starts) - 1
    assert weights.strength.shape == (sites,), f"{name}: a strength for each site"
    assert (weights.strength >= 0).all(), f"{name}: strengths must not be below 0"
    steps, mass = (
        np.bincount(site, on * part, sites) for part in (weights.counts, weights.weights)
    )
    worth = (steps + weights.strength)[site]
    prior = np.where(
        on, weights.weights / np.maximum(mass, 1e-300)[site] * worth - weights.counts, 0
    )
    assert (prior >= -1e-9 * worth).all(), (
        f"{name}: a weight is below count / (steps + strength): the strength is too small"
    )


def _check_order(
    name: str, successors: Successors, transitions: Transitions, weights: SuccessorWeights
) -> None:
    """Check that the order of the transitions does not matter, nor a second call."""
    order = np.random.default_rng(0).permutation(len(transitions.site))
    shuffled = replace(
        transitions, site=transitions.site[order], window=transitions.window[order],
        to=transitions.to[order], counts=transitions.counts[order],
    )  # fmt: skip
    for what, other in (("called again", transitions), ("in another order", shuffled)):
        again, _ = successors(other)
        alike = np.array_equal(again.interfaces, weights.interfaces)
        assert alike, f"{name}: {what}, other successors"
        assert np.allclose(again.weights, weights.weights), f"{name}: {what}, other weights"


def _check_learning(name: str, successors: Successors, log: Episodes) -> None:
    """Check that a model can be learned with it, and that `refit` changes nothing."""
    config = LearnConfig(successors=successors)
    model, info = learn_rspmn(log, config)
    assert info.windows_used is not None
    again, _ = refit(model, info.windows_used, config)
    one, other = model.values(5), again.values(5)
    assert np.allclose(one, other, equal_nan=True), (
        f"{name}: refit on the same log gives other values"
    )


# ---- logs ----------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _logs() -> dict[str, Episodes]:
    """Return logs with chance, without it, with missing values and several variables."""
    rng = np.random.default_rng(0)
    steps = []
    for _ in range(60):
        x, y, episode = int(rng.integers(3)), int(rng.integers(2)), []
        for _ in range(4):
            d = int(rng.integers(2))
            seen = {"x": None if rng.random() < 0.1 else x, "y": y}
            episode.append({**seen, "d": d, "u": float(x == d)})
            x, y = (x + d) % 3 if rng.random() < 0.8 else x, int(rng.integers(2))
        steps.append(episode)
    schema = Schema([["x", "y"], ["d"]], ["d"], "u")
    return {
        "FrozenLake": frozen_lake().generate(60, 12, 0, "final"),
        "Maze": maze().generate(30, 8, 0, "flags"),
        "missing values": Episodes.from_steps(steps, schema, [Followed.UNKNOWN] * len(steps)),
    }


def transitions_in(log: Episodes) -> Transitions:
    """Return the transitions that learning a log weighs."""
    seen = []

    def keep(transitions: Transitions) -> tuple[SuccessorWeights, None]:
        seen.append(transitions)
        return Counts()(transitions)

    learn_rspmn(log, LearnConfig(successors=keep))
    return seen[0]


def _copy(transitions: Transitions) -> list[NDArray[Any]]:
    parts = transitions.site, transitions.window, transitions.to, transitions.counts
    return [part.copy() for part in (*parts, transitions.of_states, transitions.boxes)]


def _same(one: list[NDArray[Any]], other: list[NDArray[Any]]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
