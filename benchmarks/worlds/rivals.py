"""What else learns from a log: SPIBB from finite states, fitted Q from numbers."""

from itertools import product
from typing import Any

import numpy as np

from rspmn.envs.mdp import MDP
from rspmn.evaluate import Tabular
from rspmn.types import Array, Ints
from worlds import Act, Made, States, World

#: Fitted Q: the trees of a forest, the steps in a leaf, at most so many steps and iterations.
TREES, LEAF, MOST_STEPS, MOST_ITERATIONS = 20, 5, 15_000, 40


def spibb(table: Tabular, world: MDP, horizon: int, enough: float) -> Array:
    """Return the policy of Π_b-SPIBB (Laroche et al. 2019), [horizon, states, actions].

    Actions of fewer logged steps keep the probability that the logger gave them; the rest goes to
    the best of the others.
    """
    place, action = table.places_in(world)
    tried = table.tried.reshape(len(place), -1)
    usual = tried / np.maximum(tried.sum(axis=1, keepdims=True), 1)
    usual[tried.sum(axis=1) == 0] = 1 / len(action)
    known = tried >= enough
    kept, some = np.where(known, 0.0, usual), known.any(axis=1)
    free = np.where(some, 1 - kept.sum(axis=1), 0.0)
    found = np.full((horizon, len(world.states), len(world.actions)), 1 / len(world.actions))
    values = np.zeros(len(place) + 1)
    for t in reversed(range(horizon)):
        worth = (table.earned + table.chances @ values).reshape(tried.shape)
        best = np.where(known, worth, -np.inf).argmax(axis=1)
        chosen = kept + free[:, None] * np.eye(tried.shape[1])[best]
        values[:-1] = (chosen * worth).sum(axis=1)
        found[t, place] = 0.0
        found[t, place[:, None], action] = chosen / chosen.sum(axis=1, keepdims=True)
    return found


def fitted_q(world: World, log: dict[str, list[Any]], seed: int = 0) -> Act:
    """Return the policy of fitted Q iteration on extremely randomised trees (Ernst et al. 2005)."""
    from sklearn.ensemble import ExtraTreesRegressor

    codes = {name: sorted(set(log[name])) for name in world.state if isinstance(log[name][0], str)}

    def features(state: States) -> Array:  # [n, features]
        columns = [
            np.searchsorted(codes[name], state[name]) if name in codes
            else np.array(state[name], dtype=np.float64)
            for name in world.state
        ]  # fmt: skip
        return np.nan_to_num(np.stack(columns, axis=1).astype(np.float64), nan=-1.0)

    joint = list(product(*(range(len(values)) for values in world.decisions.values())))
    number = {made: k for k, made in enumerate(joint)}
    of_values = [{v: k for k, v in enumerate(values)} for values in world.decisions.values()]
    chosen = zip(*(log[name] for name in world.decisions), strict=True)
    action = np.array([
        number[tuple(of[v] for of, v in zip(of_values, made, strict=True))] for made in chosen
    ])  # fmt: skip
    order = np.lexsort((np.array(log["time"]), np.array(log["episode"])))
    here, episode = features(log)[order], np.array(log["episode"])[order]
    reward, over = np.array(log["reward"], dtype=np.float64)[order], np.array(log["over"])[order]
    follows = np.append(episode[1:] == episode[:-1], False)
    rows = np.flatnonzero(follows | over)
    rows = np.random.default_rng(seed).permutation(rows)[:MOST_STEPS]
    after, goes_on = here[np.minimum(rows + 1, len(here) - 1)], ~over[rows]
    options = np.array(joint, dtype=np.float64)
    inputs, reward = np.hstack([here[rows], options[action[order][rows]]]), reward[rows]

    def values(model: Any, states: Array) -> Array:  # [n, actions]
        asked = np.hstack([np.repeat(states, len(options), axis=0),
                           np.tile(options, (len(states), 1))])  # fmt: skip
        found: Array = model.predict(asked)
        return found.reshape(len(states), -1)

    target, model = reward, None
    for iteration in range(min(world.horizon, MOST_ITERATIONS)):
        model = ExtraTreesRegressor(
            TREES, min_samples_leaf=LEAF, max_features=1.0, random_state=iteration
        )
        model.fit(inputs, target)
        target = reward + goes_on * values(model, after).max(axis=1)

    def act(state: States, _t: int, _rng: np.random.Generator) -> Made:
        best = values(model, features(state)).argmax(axis=1)
        made: Ints = np.array(joint)[best]
        return {name: made[:, k] for k, name in enumerate(world.decisions)}

    return act
